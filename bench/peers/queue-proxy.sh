#!/usr/bin/env bash
# queue-proxy.sh: makes Knative's queue-proxy available and prints the path of the program. It is built from the Go
# module proxy; 0.42.2 is the newest whose modules are all there (the part that queues has not changed since).
source "$(dirname "${BASH_SOURCE[0]}")/../../e2e/cluster/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"

version=$QUEUE_PROXY_VERSION
lock queue-proxy
[[ -x $BIN_DIR/queue-proxy-$version ]] ||
  step "Building Knative's queue-proxy $version (about 3 min on 2 cores), once" build-queue-proxy \
    go_binary queue-proxy "$version" knative.dev/serving knative.dev/serving/cmd/queue
echo "$BIN_DIR/queue-proxy-$version"
