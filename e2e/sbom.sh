#!/usr/bin/env bash
# sbom.sh: writes what is in the operator's and the sidecar's image to .state/sbom/{operator,sidecar}.{cdx,spdx}.json
# (CycloneDX, SPDX), by syft, and fails if something is missing of which we know that it is in there.
source "$(dirname "${BASH_SOURCE[0]}")/cluster/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"
cd "$CLONE_DIR"
use_engine
state_dir

# Of one version: what it finds differs from release to release.
syft=$BIN_DIR/syft-$SYFT_VERSION
if [[ ! -x $syft ]]; then
  lock tool-syft
  [[ -x $syft ]] || step "Building syft $SYFT_VERSION (some minutes), once" build-syft \
    go_binary syft "$SYFT_VERSION" github.com/anchore/syft github.com/anchore/syft/cmd/syft "-X main.version=${SYFT_VERSION#v}"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# It would ask its maker's server for a newer version.
export SYFT_CHECK_FOR_APP_UPDATE=false

# list NAME IMAGE. From an archive, so that it does not matter where the engine listens. The
# operator's bundle is described by a file in the image, which syft reads if told to.
list() {
  local out=$STATE_DIR/sbom/$1
  docker save -o "$work/$1.tar" "$2"
  "$syft" scan "docker-archive:$work/$1.tar" --source-name "corelane-$1" --source-version "${2##*:}" \
    --select-catalogers +sbom-cataloger -o "cyclonedx-json=$out.cdx.json" -o "spdx-json=$out.spdx.json"
  rm "$work/$1.tar"
}

images=$(e2e/images.sh)
mkdir -p "$STATE_DIR/sbom"
for name in operator sidecar; do
  step "Listing what is in the image of the $name" "sbom-$name" list "$name" "$(sed -n "s/^${name^^}_IMAGE=//p" <<<"$images")"
done
node_modules/.bin/node .ci/sbom-check.mjs "$STATE_DIR/sbom"
