#!/usr/bin/env bash
# keda.sh: makes KEDA's operator and metrics adapter available, for `make test-keda`. They are built from the module of
# KEDA_VERSION, once; the cache's name for them holds the version. Prints
#
#   KEDA_IMAGE=...    an image with both, as /usr/local/bin/keda-operator and keda-adapter
#   KEDA_CONFIG=...   the folder config/ of the module: definitions in crd/bases, rights in rbac
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"

MODULE=github.com/kedacore/keda/v2
image=$STANDIN/keda:$KEDA_VERSION
folder=$CACHE_DIR/keda-$KEDA_VERSION

# A build cut short must not leave something that looks finished.
keep() {
  local new=$folder.new
  rm -rf "$new"
  mkdir -p "$new"
  mv "$source/out/operator" "$new/keda-operator"
  mv "$source/out/adapter" "$new/keda-adapter"
  cp -r "$source/config" "$new/config"
  mv "$new" "$folder"
}

pack() {
  local context
  context=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$context'" EXIT
  place "$folder/keda-operator" "$context/keda-operator"
  place "$folder/keda-adapter" "$context/keda-adapter"
  # The adapter makes a folder in /tmp.
  printf '%s\n' 'FROM scratch' 'COPY keda-operator keda-adapter /usr/local/bin/' 'WORKDIR /tmp' \
    'ENV PATH=/usr/local/bin' >"$context/Dockerfile"
  DOCKER_BUILDKIT=0 docker build --network=host --label corelane.local/component=1 -t "$image" "$context"
}

use_engine
lock keda
if [[ ! -d $folder ]]; then
  go_is_there KEDA
  source=$(mktemp -d)/keda
  # shellcheck disable=SC2064
  trap "rm -rf '${source%/keda}'" EXIT
  step "Fetching KEDA $KEDA_VERSION" keda-source go_module_copy "$MODULE" "$KEDA_VERSION" "$source"
  go_compile "KEDA's operator and adapter" keda "$source" "$source/out" ./cmd/operator ./cmd/adapter
  keep
fi
image_exists "$image" || step 'Packing KEDA as an image' keda-image pack
echo "KEDA_IMAGE=$image"
echo "KEDA_CONFIG=$folder/config"
