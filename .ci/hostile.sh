#!/usr/bin/env bash
# hostile.sh: what `make test-hostile` needs (engine, images, Debian's slowhttptest), and the run itself.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/cluster/lib.sh"
cd "$CLONE_DIR"
state_dir
e2e/cluster/engine.sh up
eval "$(e2e/cluster/engine.sh env)"
# It reaches the pods by their addresses: on Linux only.
have slowhttptest || apt_install slowhttptest
images=$(e2e/images.sh)
# shellcheck disable=SC2163
export $images
export CORELANE_SIDECAR_IMAGE=$SIDECAR_IMAGE CORELANE_NODE_IMAGE=$NODE_IMAGE
exec node_modules/.bin/node sidecar/test/hostile/main.ts
