#!/usr/bin/env bash
# images.sh [--load|--release]: builds the project's images into the engine and prints their
# names, one NAME=IMAGE per line. --load also puts them into the cluster's nodes.
# --release takes the official base images by digest, or fails.
#
# The tag is a hash of all that goes into the image: an unchanged image is not built
# again, and a changed one rolls out by itself because its name is another.
source "$(dirname "${BASH_SOURCE[0]}")/cluster/lib.sh"
cd "$CLONE_DIR"
use_engine

# content_tag PATH...: hash of the files below the paths, names and modes included.
content_tag() {
  find "$@" -type f ! -path '*/node_modules/*' ! -path '*/test/*' -print0 | sort -z |
    xargs -0 sha256sum | sha256sum | cut -c1-12
}

# build NAME TAG ARG...: unless the engine has it.
build() {
  local image=$STANDIN/$1:$2
  shift 2
  if image_exists "$image"; then
    cached "Building image $image"
  else
    # The host's network: a bare machine's bridge may not reach the package mirror.
    step "Building image $image (about 30 s)" "image-${image##*/}" \
      docker build --network=host "${base_args[@]}" -t "$image" "$@"
  fi
}

[[ ${1:-} != --release ]] || export CORELANE_RELEASE=1
base_images=$("$CLUSTER_DIR/base-images.sh" debian node)
base_args=()
for pair in $base_images; do base_args+=(--build-arg "$pair"); done
bases=$(hash_of "$base_images")

operator_tag=$(content_tag Dockerfile operator/dist)
sidecar_tag=$(content_tag Dockerfile sidecar)
storefront_tag=dev # examples/storefront.yaml names it

build operator "$operator_tag-${bases:0:4}" --target operator .
build sidecar "$sidecar_tag-${bases:0:4}" --target sidecar .
# Docker's own cache decides about the example: its tag is fixed.
step "Building image $STANDIN/storefront:$storefront_tag (about 20 s, then cached)" image-storefront \
  docker build --network=host "${base_args[@]}" -t "$STANDIN/storefront:$storefront_tag" examples/storefront

images=(
  "OPERATOR_IMAGE=$STANDIN/operator:$operator_tag-${bases:0:4}"
  "SIDECAR_IMAGE=$STANDIN/sidecar:$sidecar_tag-${bases:0:4}"
  "STOREFRONT_IMAGE=$STANDIN/storefront:$storefront_tag"
)
if [[ ${1:-} == --load ]]; then
  "$CLUSTER_DIR/load-image.sh" "${images[@]#*=}" >&2
fi
printf '%s\n' "${images[@]}" "$base_images"
