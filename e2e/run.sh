#!/usr/bin/env bash
# run.sh [APP [OPTION...]]: `corelane run` on a machine that may have nothing: brings up a
# container engine, base images, Node packages and the images it needs, and nothing else.
# APP is examples/storefront.yaml unless given.
source "$(dirname "${BASH_SOURCE[0]}")/cluster/lib.sh"
cd "$CLONE_DIR"
state_dir
app=${1:-examples/storefront.yaml}
shift $(($# > 0))

packages() {
  local stamp
  for stamp in node_modules/.package-lock.json node_modules/.run; do
    if [[ -e $stamp && ! package.json -nt $stamp && ! package-lock.json -nt $stamp ]]; then return; fi
  done
  step "Installing Node packages (about 15 s)" run-npm install_packages
}
# Only what `corelane run` loads. `make setup` installs the rest: it finds no .package-lock.json.
install_packages() {
  npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error
  .ci/node-is-there.sh
  rm -f node_modules/.package-lock.json
  touch node_modules/.run
}

# An image for the folder that is to run, the storefront's for its example; a RenderService of the user's names its own.
wanted=(sidecar)
if [[ -d $app ]]; then wanted+=(node); fi
[[ $app != examples/storefront.yaml ]] || wanted+=(storefront)

base_images() {
  "$CLUSTER_DIR/engine.sh" up
  eval "$("$CLUSTER_DIR/engine.sh" env)"
  "$CLUSTER_DIR/base-images.sh" debian >/dev/null
}

# Packages come from the network while Debian's are unpacked. The images wait for both: a part of the sidecar's is made
# with the packages.
CORELANE_LINES=1 at_the_same_time packages base_images
CORELANE_LINES=1 e2e/images.sh "${wanted[@]}" >"$STATE_DIR/run-images"
eval "$("$CLUSTER_DIR/engine.sh" env)"
# shellcheck disable=SC2046
export $(cat "$STATE_DIR/run-images")
export CORELANE_SIDECAR_IMAGE=$SIDECAR_IMAGE
[[ -z ${NODE_IMAGE:-} ]] || export CORELANE_NODE_IMAGE=$NODE_IMAGE
exec node_modules/.bin/node operator/bin/corelane.mjs run "$app" "$@"
