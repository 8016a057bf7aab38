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
  go_is_there 'the OpenTelemetry Collector'
  # go.sum beside go.mod has the hashes of all modules: Go refuses a changed one.
  go_compile 'the OpenTelemetry Collector' collector "$folder" "$binary" .
fi
image_exists "$image" || step 'Packing the OpenTelemetry Collector as an image' collector-image pack
echo "COLLECTOR_IMAGE=$image"
