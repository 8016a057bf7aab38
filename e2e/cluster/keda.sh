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

in_source() { # COMMAND...
  cd "$source"
  GOFLAGS=$GO_FLAGS CGO_ENABLED=0 nice -n 10 "$@"
}

list_packages() {
  in_source go list -deps $GO_COMPILER_FLAGS -f '{{if and .Stale (ne .Name "main")}}{{.ImportPath}}{{end}}' \
    ./cmd/operator ./cmd/adapter >"$LOG_DIR/keda-packages"
}

build() {
  mkdir -p "$source/out"
  in_source go build $GO_COMPILER_FLAGS -ldflags '-s -w' -o out/ ./cmd/operator ./cmd/adapter
}

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
  have go || die "Go is needed to build KEDA"
  source=$(mktemp -d)/keda
  # shellcheck disable=SC2064
  trap "rm -rf '${source%/keda}'" EXIT
  step "Fetching KEDA $KEDA_VERSION" keda-source go_module_copy "$MODULE" "$KEDA_VERSION" "$source"
  step 'Fetching the Go modules of KEDA' keda-modules list_packages
  count=$(wc -l <"$LOG_DIR/keda-packages")
  step "Compiling KEDA's operator and adapter: $count packages$(about_packages "$count"), once" keda-build build
  keep
fi
image_exists "$image" || step 'Packing KEDA as an image' keda-image pack
echo "KEDA_IMAGE=$image"
echo "KEDA_CONFIG=$folder/config"
