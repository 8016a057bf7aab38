#!/usr/bin/env bash
# images.sh [--load|--release] [operator|sidecar|storefront|node]...: builds these images
# of the project (all of them) into the engine and prints their names and those of their
# base images, one NAME=IMAGE per line. --load also puts them into the cluster's nodes.
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
  local name=$1 image=$STANDIN/$1:$2
  shift 2
  if image_exists "$image"; then
    cached "Building image $image"
  else
    # The host's network: a bare machine's bridge may not reach the package mirror.
    step "Building image $image (about 30 s)" "image-$name" \
      docker build --network=host "${base_args[@]}" -t "$image" "$@"
  fi
}

load=
while [[ ${1:-} == --* ]]; do
  case $1 in
    --load) load=1 ;;
    --release) export CORELANE_RELEASE=1 ;;
    *) die "images.sh: no option $1" ;;
  esac
  shift
done
(($#)) || set -- operator sidecar storefront

base_images=$("$CLUSTER_DIR/base-images.sh" debian node)
base_args=()
for pair in $base_images; do base_args+=(--build-arg "$pair"); done
bases=$(hash_of "$base_images")

images=()
for name in "$@"; do
  case $name in
    operator) tag=$(content_tag Dockerfile operator/dist)-${bases:0:4} ;;
    sidecar) tag=$(content_tag Dockerfile sidecar)-${bases:0:4} ;;
    storefront) tag=dev ;; # examples/storefront.yaml names it
    node) continue ;; # a base image
    *) die "images.sh: no image $name" ;;
  esac
  if [[ $name == storefront ]]; then
    # Docker's own cache decides about the example: its tag is fixed.
    step "Building image $STANDIN/$name:$tag (about 20 s, then cached)" image-storefront \
      docker build --network=host "${base_args[@]}" -t "$STANDIN/$name:$tag" examples/storefront
  else
    build "$name" "$tag" --target "$name" .
  fi
  images+=("${name^^}_IMAGE=$STANDIN/$name:$tag")
done
if [[ -n $load ]]; then "$CLUSTER_DIR/load-image.sh" "${images[@]#*=}" >&2; fi
printf '%s\n' "${images[@]}" "$base_images"
