#!/usr/bin/env bash
# cache-tests.sh: unpacks http-cache-tests beside the other packages of this folder. Not by `npm install`: it asks for a
# whole npm 6, which only its own scripts need.
source "$(dirname "${BASH_SOURCE[0]}")/../../e2e/cluster/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive=$("$CLUSTER_DIR/npm-tarball.sh" http-cache-tests "$HTTP_CACHE_TESTS_VERSION" "$work")
target=$CLONE_DIR/bench/peers/node_modules/http-cache-tests
rm -rf "$target"
mkdir -p "$target"
tar -xzf "$archive" -C "$target" --strip-components=1
