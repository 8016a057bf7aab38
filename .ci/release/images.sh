#!/usr/bin/env bash
# images.sh native FOLDER          builds the images of this machine's architecture: FOLDER/NAME-ARCH.tar
# images.sh cross FOLDER           the same for arm64 on an amd64 machine, see arm64.sh
# images.sh index FOLDER OUTPUT    makes one OCI archive of each image, with all architectures, of what is in FOLDER:
#                                  OUTPUT/corelane-NAME-VERSION.oci.tar, and OUTPUT/images.txt with their digests
#
# With CORELANE_RELEASE=1 they stand on the official base images, by digest, or nothing is built.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

IMAGES='operator sidecar'

native() {
  local folder=$1 images name
  use_engine
  # shellcheck disable=SC2086
  images=$(e2e/images.sh ${CORELANE_RELEASE:+--release} $IMAGES)
  mkdir -p "$folder"
  for name in $IMAGES; do
    step "Saving the image of the $name ($(native_arch))" "release-save-$name" \
      docker save -o "$folder/$name-$(native_arch).tar" "$(sed -n "s/^${name^^}_IMAGE=//p" <<<"$images")"
  done
}

# The name by which containerd, kind and Docker know the image after `import`: an archive has none of its own.
annotate() { # LAYOUT IMAGE
  node -e '
    const fs = require("node:fs");
    const [file, image] = process.argv.slice(1);
    const index = JSON.parse(fs.readFileSync(file, "utf8"));
    const [, tag] = /:([^:/]+)$/.exec(image);
    for (const manifest of index.manifests) {
      manifest.annotations = { "io.containerd.image.name": image, "org.opencontainers.image.ref.name": tag };
    }
    fs.writeFileSync(file, JSON.stringify(index));
  ' "$1/index.json" "$2"
}

index_of() { # NAME FOLDER OUTPUT
  local name=$1 folder=$2 output=$3 image=$REPOSITORY/$1:$VERSION arch manifests=() layout
  for arch in $ARCHITECTURES; do
    [[ -e $folder/$name-$arch.tar ]] || die "there is no image of the $name for $arch: $folder/$name-$arch.tar"
    crane push "$folder/$name-$arch.tar" "$registry/$name:$VERSION-$arch"
    # Registries show these; GitHub's learns from the first one whose package it is.
    crane mutate "$registry/$name:$VERSION-$arch" --tag "$registry/$name:$VERSION-$arch" \
      --label "org.opencontainers.image.source=https://github.com/corelane/corelane" \
      --label "org.opencontainers.image.version=$VERSION" --label org.opencontainers.image.licenses=Apache-2.0 \
      --label "org.opencontainers.image.title=corelane-$name"
    manifests+=(--manifest "$registry/$name:$VERSION-$arch")
  done
  crane index append "${manifests[@]}" --tag "$registry/$name:$VERSION"
  layout=$work/$name
  crane pull --format=oci "$registry/$name:$VERSION" "$layout"
  annotate "$layout" "$image"
  reproducible_tar -C "$layout" -cf "$output/corelane-$name-$VERSION.oci.tar" .
  echo "$image@$(crane digest "$registry/$name:$VERSION")" >>"$output/images.txt"
}

make_index() {
  local folder=$1 output=$2 name
  use_crane
  work=$(mktemp -d)
  registry_up "$work/registry"
  trap 'kill "$registry_pid"; rm -rf "$work"' EXIT
  mkdir -p "$output"
  rm -f "$output/images.txt"
  for name in $IMAGES; do
    step "Making one image of the $name for ${ARCHITECTURES// /, }" "release-index-$name" index_of "$name" "$folder" "$output"
  done
}

case ${1:-} in
  native) native "$2" ;;
  cross) "$RELEASE_DIR/arm64.sh" "$2" ;;
  index) make_index "$2" "$3" ;;
  *) die "usage: images.sh native|cross FOLDER, or images.sh index FOLDER OUTPUT" ;;
esac
