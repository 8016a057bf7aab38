#!/usr/bin/env bash
# down.sh: stops everything these scripts started: this clone's test API servers,
# the cluster, and the container engine if it is ours. Caches stay, so the next
# start is quick. The cluster and the engine are shared by all clones here.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$CLUSTER_DIR/apiserver.sh" down --all
"$CLUSTER_DIR/cluster.sh" down
"$CLUSTER_DIR/engine.sh" down
