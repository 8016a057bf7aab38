#!/usr/bin/env bash
# publish.sh registry REGISTRY   sends images and chart of dist/ there: REGISTRY/operator, REGISTRY/charts/corelane ...
# publish.sh all                 publishes and signs all of dist/: images, chart, npm package, release on GitHub.
#                                .github/workflows/release.yaml calls it: signatures have its identity, nobody has a key
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[[ -e $DIST/SHA256SUMS ]] || die "there is no release in dist/: make release"

# What a registry on loopback speaks.
is_loopback() { [[ $1 == 127.0.0.1:* ]]; }

into_registry() { # REGISTRY
  local name layout work plain=()
  work=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" RETURN
  ! is_loopback "$1" || plain=(--plain-http)
  for name in operator sidecar; do
    layout=$work/$name
    mkdir "$layout"
    tar -xf "$DIST/corelane-$name-$VERSION.oci.tar" -C "$layout"
    crane push "$layout" "$1/$name:$VERSION"
    # What was tested is what is there.
    grep -Fx "$REPOSITORY/$name:$VERSION@$(crane digest "$1/$name:$VERSION")" "$DIST/images.txt"
  done
  helm push "$DIST/corelane-chart-$VERSION.tgz" "oci://$1/charts" "${plain[@]}"
}

# Keyless: cosign asks the workflow's identity provider, and Rekor keeps who signed what.
sign() {
  local image name arch
  while read -r image; do
    name=${image#"$REPOSITORY/"}
    name=${name%%:*}
    image=$REPOSITORY/$name@${image##*@}
    cosign sign --yes "$image"
    for arch in $ARCHITECTURES; do
      cosign attest --yes --type cyclonedx --predicate "$DIST/corelane-$name-$VERSION-$arch.cdx.json" \
        "$REPOSITORY/$name@$(crane digest --platform "linux/$arch" "$image")"
    done
  done <"$DIST/images.txt"
  cosign sign --yes "$REPOSITORY/charts/corelane@$(crane digest "$REPOSITORY/charts/corelane:$VERSION")"
  cosign sign-blob --yes --bundle "$DIST/SHA256SUMS.sigstore.json" "$DIST/SHA256SUMS"
}

log_in() {
  local host=${REPOSITORY%%/*}
  crane auth login "$host" --username "$REGISTRY_USER" --password-stdin <<<"$GH_TOKEN"
  helm registry login "$host" --username "$REGISTRY_USER" --password-stdin <<<"$GH_TOKEN"
}

notes() { awk -v version="$VERSION" '$1 == "##" { inside = $2 == version } inside' CHANGELOG.md; }

PATH=$("$CLUSTER_DIR/tools.sh" helm):$PATH
use_crane
case ${1:-} in
  registry) into_registry "$2" ;;
  all)
    [[ -n ${CORELANE_RELEASE:-} ]] || die "what was made without CORELANE_RELEASE=1 may stand on stand-ins: not for publication"
    (cd "$DIST" && sha256sum --check --strict --quiet SHA256SUMS)
    log_in
    into_registry "$REPOSITORY"
    sign
    npm publish "$DIST/corelane-cli-$VERSION.tgz" --access public --provenance
    notes | gh release create "v$VERSION" --verify-tag --title "v$VERSION" --notes-file - "$DIST"/*
    ;;
  *) die "usage: publish.sh registry REGISTRY, or publish.sh all" ;;
esac
