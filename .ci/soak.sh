#!/usr/bin/env bash
# soak.sh: what `make soak` needs (images in the nodes, kubectl, helm), and the run itself.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/cluster/lib.sh"
cd "$CLONE_DIR"
state_dir
use_engine
tools=$(e2e/cluster/tools.sh kubectl helm)
images=$(e2e/images.sh --load)
# shellcheck disable=SC2163
export PATH="$tools:$PATH" $images
exec node_modules/.bin/node bench/soak.ts
