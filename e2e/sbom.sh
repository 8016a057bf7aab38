#!/usr/bin/env bash
# sbom.sh: writes what is in the operator's and the sidecar's image to .state/sbom/{operator,sidecar}.{cdx,spdx}.json
# (CycloneDX, SPDX), by syft, and fails if something is missing of which we know that it is in there.
# sbom.sh ARCHIVES ARCH VERSION OUTPUT: the same of ARCHIVES/{operator,sidecar}-ARCH.tar, into OUTPUT.
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

# list NAME ARCHIVE VERSION. From an archive, so that it does not matter where the engine listens. The
# operator's bundle is described by a file in the image, which syft reads if told to.
list() {
  "$syft" scan "docker-archive:$2" --source-name "corelane-$1" --source-version "$3" \
    --select-catalogers +sbom-cataloger -o "cyclonedx-json=$output/$1.cdx.json" -o "spdx-json=$output/$1.spdx.json"
}
list_image() { # NAME IMAGE
  docker save -o "$work/$1.tar" "$2"
  list "$1" "$work/$1.tar" "${2##*:}"
  rm "$work/$1.tar"
}

output=${4:-$STATE_DIR/sbom}
mkdir -p "$output"
(($#)) || images=$(e2e/images.sh)
for name in operator sidecar; do
  if (($#)); then
    step "Listing what is in the image of the $name ($2)" "sbom-$name" list "$name" "$1/$name-$2.tar" "$3"
  else
    step "Listing what is in the image of the $name" "sbom-$name" \
      list_image "$name" "$(sed -n "s/^${name^^}_IMAGE=//p" <<<"$images")"
  fi
done
node_modules/.bin/node .ci/sbom-check.mjs "$output"
