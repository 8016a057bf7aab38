#!/usr/bin/env bash
# collector.sh: makes an OpenTelemetry Collector available, for `make test-tracing`: its own receiver of OTLP, and what
# writes down what it gets (e2e/collector/build). Built from its modules, once; the cache's name for it holds a hash of
# what it is made of. Prints
#
#   COLLECTOR_IMAGE=...
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"

folder=$(cd "$CLUSTER_DIR/../collector/build" && pwd)
version=$(hash_of "$folder/go.mod" "$folder/go.sum" "$folder/main.go")
binary=$BIN_DIR/collector-$version
image=$STANDIN/collector:$version

# go.sum has the hashes of all modules: a changed one is refused.
in_folder() { # COMMAND...
  cd "$folder"
  GOFLAGS=$GO_FLAGS CGO_ENABLED=0 nice -n 10 "$@"
}
list_packages() {
  in_folder go list -deps $GO_COMPILER_FLAGS -f '{{if and .Stale (ne .Name "main")}}{{.ImportPath}}{{end}}' . \
    >"$LOG_DIR/collector-packages"
}
# A build cut short must not leave something that looks finished.
build() {
  mkdir -p "$BIN_DIR"
  in_folder go build $GO_COMPILER_FLAGS -ldflags '-s -w' -o "$binary.part" .
  mv "$binary.part" "$binary"
}
pack() {
  local context
  context=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$context'" EXIT
  place "$binary" "$context/collector"
  cp "$folder/collector.yaml" "$context/"
  printf '%s\n' 'FROM scratch' 'COPY collector collector.yaml /' 'USER 10001:10001' \
    'ENTRYPOINT ["/collector", "--config=/collector.yaml"]' >"$context/Dockerfile"
  DOCKER_BUILDKIT=0 docker build --network=host --label corelane.local/component=1 -t "$image" "$context"
}

use_engine
lock collector
if [[ ! -x $binary ]]; then
  have go || die "Go is needed to build the OpenTelemetry Collector"
  step 'Fetching the Go modules of the OpenTelemetry Collector' collector-modules list_packages
  count=$(wc -l <"$LOG_DIR/collector-packages")
  step "Compiling the OpenTelemetry Collector: $count packages$(about_packages "$count"), once" collector-build build
fi
image_exists "$image" || step 'Packing the OpenTelemetry Collector as an image' collector-image pack
echo "COLLECTOR_IMAGE=$image"
