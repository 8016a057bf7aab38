#!/usr/bin/env bash
# images.sh [--load|--release] [operator|sidecar|storefront|node|peers|prometheus|chromium]...: builds these images
# of the project (all of them) into the engine and prints their names and those of the base
# images they stand on, one NAME=IMAGE per line. --load also puts them into the cluster's nodes.
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

# docker_build ARG...: with the base images of this lane. The host's network: a bare machine's bridge may not reach the
# package mirror.
docker_build() {
  local pair arguments=()
  for pair in $bases; do arguments+=(--build-arg "$pair"); done
  docker build --network=host "${arguments[@]}" "$@"
}

# stages NAME...: the Dockerfile with these stages alone. The classic builder makes all that stand before its target,
# whether that needs them or not.
stages() {
  awk -v wanted=" $* " '/^FROM / { isStage = 1; isWanted = index(wanted, " " $NF " ") } !isStage || isWanted' Dockerfile
}

# The two long stages at the same time: one is compiled, the other installed. The last build finds both in the cache.
build_sidecar() { # IMAGE
  local pids=() pid stage
  for stage in programs proxies; do
    stages "$stage" | docker_build -f - . &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  stages programs proxies sidecar | docker_build -t "$1" -f - .
}
build_operator() { stages node operator | docker_build -t "$1" -f - .; }
# What the benches run beside Corelane. Nothing of its folder goes in.
build_peers() { docker_build -t "$1" - <bench/peers/Dockerfile; }
# What the rules are tried with. Nothing of its folder goes in.
build_prometheus() { docker_build -t "$1" - <e2e/alerts/Dockerfile; }
# What the page of the dashboard is tried with. Nothing of its folder goes in.
build_chromium() { docker_build -t "$1" - <e2e/browser/Dockerfile; }
build_storefront() { docker_build -t "$1" examples/storefront; }

# make_image NAME TAG: unless the engine has it.
make_image() {
  local name=$1 image=$STANDIN/$1:$2 title="Building image $STANDIN/$1:$2"
  if [[ $name == storefront ]]; then
    # Docker's own cache decides about the example: its tag is fixed.
    step "$title (about 10 s, then cached)" image-storefront build_storefront "$image"
  elif image_exists "$image"; then
    cached "$title"
  else
    step "$title (about 20 s)" "image-$name" "build_$name" "$image"
  fi
  echo "${name^^}_IMAGE=$image" >"$made/$name"
}

# ---- Lanes: what stands on Debian alone, and what stands on Node.js as well ----

on_debian() {
  local bases
  bases=$("$CLUSTER_DIR/base-images.sh" debian)
  echo "$bases" >"$made/debian"
  if wanted peers; then make_image peers "$(content_tag bench/peers/Dockerfile)-$(hash_of "$bases" | cut -c1-4)"; fi
  if wanted prometheus; then
    make_image prometheus "$(content_tag e2e/alerts/Dockerfile)-$(hash_of "$bases" | cut -c1-4)"
  fi
  if wanted chromium; then
    make_image chromium "$(content_tag e2e/browser/Dockerfile)-$(hash_of "$bases" | cut -c1-4)"
  fi
  # A part of the image, made with the packages of this clone. The build stages of the Dockerfile do not install them.
  if wanted sidecar; then
    [[ -x node_modules/.bin/node ]] || die "images.sh: Node packages are not installed, and the sidecar image needs them. Run: make setup"
    make -s sidecar/runtime/dist/spans.cjs
  fi
  if wanted sidecar; then make_image sidecar "$(content_tag Dockerfile sidecar)-$(hash_of "$bases" | cut -c1-4)"; fi
}

on_node() {
  local bases
  bases=$("$CLUSTER_DIR/base-images.sh" node debian | sort)
  grep ^NODE_IMAGE= <<<"$bases" >"$made/node"
  # examples/storefront.yaml names the tag.
  if wanted storefront; then make_image storefront dev; fi
  if wanted operator; then
    make_image operator "$(content_tag Dockerfile operator/dist)-$(hash_of "$bases" | cut -c1-4)"
  fi
}

wanted() { [[ " ${names[*]} " == *" $1 "* ]]; }

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
names=("$@")
for name in "${names[@]}"; do
  [[ $name =~ ^(operator|sidecar|storefront|node|peers|prometheus|chromium)$ ]] || die "images.sh: no image $name"
done

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
lanes=(on_debian)
if wanted operator || wanted storefront || wanted node; then lanes+=(on_node); fi
((${#lanes[@]} == 1)) || export CORELANE_LINES=1
at_the_same_time "${lanes[@]}"

images=$(for name in "${names[@]}"; do [[ $name == node ]] || cat "$made/$name"; done)
# shellcheck disable=SC2086
if [[ -n $load ]]; then "$CLUSTER_DIR/load-image.sh" $(sed 's/^[^=]*=//' <<<"$images") >&2; fi
printf '%s\n' $images
cat "$made/debian"
[[ ! -e $made/node ]] || cat "$made/node"
