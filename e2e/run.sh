#!/usr/bin/env bash
# run.sh [APP [OPTION...]]: `corelane run` on a machine that may have nothing: brings up a
# container engine, base images, Node packages and the images it needs, and nothing else.
# APP is examples/storefront.yaml unless given.
source "$(dirname "${BASH_SOURCE[0]}")/cluster/lib.sh"
cd "$CLONE_DIR"
app=${1:-examples/storefront.yaml}
shift $(($# > 0))

# Only what `corelane run` loads. `make setup` installs the rest: it finds no .package-lock.json.
node_packages() {
  npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error
  .ci/node-is-there.sh
  rm -f node_modules/.package-lock.json
  touch node_modules/.run
}

packages_are_there() {
  local stamp
  for stamp in node_modules/.package-lock.json node_modules/.run; do
    if [[ -e $stamp && ! package.json -nt $stamp && ! package-lock.json -nt $stamp ]]; then return 0; fi
  done
  return 1
}

packages_pid=
if ! packages_are_there; then
  # They wait for the network while Debian's packages are unpacked.
  step "Installing Node packages (about 15 s, meanwhile)" run-npm node_packages &
  packages_pid=$!
fi
"$CLUSTER_DIR/engine.sh" up
eval "$("$CLUSTER_DIR/engine.sh" env)"
wanted=(sidecar)
[[ $app != examples/storefront.yaml ]] || wanted+=(storefront)
images=$(e2e/images.sh "${wanted[@]}")
# shellcheck disable=SC2046,SC2086
export $images
export CORELANE_SIDECAR_IMAGE=$SIDECAR_IMAGE CORELANE_NODE_IMAGE=$NODE_IMAGE
[[ -z $packages_pid ]] || wait "$packages_pid"
exec node_modules/.bin/node operator/bin/corelane.mjs run "$app" "$@"
