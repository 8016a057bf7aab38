#!/usr/bin/env bash
# release.sh: every file of a release into dist/, none of them published. The workflow in .github/workflows/release.yaml
# signs and publishes what this has made; test.sh installs a cluster from it.
#
#   IMAGES=FOLDER       takes images (NAME-ARCH.tar) that were built elsewhere, for the architectures that are there
#   CORELANE_RELEASE=1  is for what is published: stand-ins for base images are errors, and CHANGELOG.md has the version
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_engine
PATH=$("$CLUSTER_DIR/tools.sh" helm):$PATH
use_crane

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The version stands in package.json. What must have the same, has it.
check_version() {
  local problems=()
  [[ $(sed -n 's/^version: //p' charts/corelane/Chart.yaml) == "$VERSION" ]] || problems+=("Chart.yaml's version")
  [[ $(sed -n 's/^appVersion: //p' charts/corelane/Chart.yaml) == "$VERSION" ]] || problems+=("Chart.yaml's appVersion")
  [[ -z ${CORELANE_RELEASE:-} ]] || grep -q "^## $VERSION\b" CHANGELOG.md || problems+=("a heading of CHANGELOG.md")
  [[ -z ${TAG:-} || $TAG == "v$VERSION" ]] || problems+=("the tag $TAG")
  ((${#problems[@]} == 0)) || die "package.json says $VERSION; other is: $(IFS=,; echo "${problems[*]}")"
}

cli() {
  node_modules/.bin/node operator/gen/package.ts "$work/package"
  npm pack "$work/package" --pack-destination "$work" --ignore-scripts --loglevel=error
  mv "$work/corelane-$VERSION.tgz" "$DIST/corelane-cli-$VERSION.tgz"
}

# The plugin is the npm package with a shell script beside it: krew installs programs, not packages.
krew() {
  local archive=kubectl-corelane-$VERSION.tar.gz sum
  mkdir -p "$work/plugin"
  tar -xzf "$DIST/corelane-cli-$VERSION.tgz" --strip-components=1 -C "$work/plugin"
  install -m 755 "$RELEASE_DIR/kubectl-corelane" "$work/plugin/"
  reproducible_tar -C "$work/plugin" -c . | gzip -n9 >"$DIST/$archive"
  sum=$(sha256sum <"$DIST/$archive" | cut -d' ' -f1)
  sed -e '/^#/d' -e "s/VERSION/$VERSION/g" -e "s/SHA256/$sum/" "$RELEASE_DIR/krew.yaml" >"$DIST/krew-corelane.yaml"
}

chart() {
  helm package charts/corelane --destination "$work"
  mv "$work/corelane-$VERSION.tgz" "$DIST/corelane-chart-$VERSION.tgz"
}

# Of the very images that are released.
boms() {
  local arch name format
  for arch in $ARCHITECTURES; do
    e2e/sbom.sh "$images" "$arch" "$VERSION" "$work/sbom"
    for name in operator sidecar; do
      for format in cdx spdx; do
        mv "$work/sbom/$name.$format.json" "$DIST/corelane-$name-$VERSION-$arch.$format.json"
      done
    done
  done
  tar -xzOf "$DIST/corelane-cli-$VERSION.tgz" package/bundle.cdx.json >"$DIST/corelane-cli-$VERSION.cdx.json"
}

sums() { (cd "$DIST" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum -- >"$work/sums" && mv "$work/sums" SHA256SUMS); }

check_version
rm -rf "$DIST"
mkdir -p "$DIST"
images=$work/images
mkdir -p "$images"
[[ -z ${IMAGES:-} ]] || cp "$IMAGES"/*.tar "$images/"
[[ -e $images/operator-$(native_arch).tar ]] || "$RELEASE_DIR/images.sh" native "$images"
[[ -e $images/operator-arm64.tar ]] || "$RELEASE_DIR/images.sh" cross "$images"
"$RELEASE_DIR/images.sh" index "$images" "$DIST"
step "Packing the command line for npm" release-cli cli
step "Packing the plugin of kubectl for krew" release-krew krew
step "Packing the chart" release-chart chart
cp charts/install.yaml "$DIST/"
boms
sums
[[ -n ${CORELANE_RELEASE:-} ]] ||
  say "These are for tests: their base images may be stand-ins (docs/supply-chain.md). CORELANE_RELEASE=1 allows none."
ls -l --block-size=k "$DIST" | awk 'NR > 1 { printf "  %8s  %s\n", $5, $9 }' >&2
