#!/usr/bin/env bash
# kwok.sh: makes kwok available, which plays nodes on which pods run that nobody starts. It is built from the module of
# KWOK_VERSION, once; the cache's name for it holds the version. Prints
#
#   KWOK=...         the program
#   KWOK_STAGES=...  a file for its --config: a node is ready as soon as it is there, and so is a pod; one that is
#                    deleted is gone at once (stages "fast" of the module)
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"

MODULE=sigs.k8s.io/kwok
folder=$CACHE_DIR/kwok-$KWOK_VERSION

# The module's own hash is in go.sum, so a changed stage is refused as a changed program is.
build() {
  (go_binary kwok "$KWOK_VERSION" "$MODULE" "$MODULE/cmd/kwok")
  local module new=$folder.new file
  module=$(go env GOMODCACHE)/$MODULE@$KWOK_VERSION
  rm -rf "$new"
  mkdir -p "$new"
  for file in "$module"/kustomize/stage/{node,pod}/fast/{node,pod}-*.yaml; do
    [[ ! -e $file ]] || { echo '---'; cat "$file"; }
  done >"$new/stages.yaml"
  mv "$BIN_DIR/kwok-$KWOK_VERSION" "$new/kwok"
  mv "$new" "$folder"
}

lock kwok
[[ -d $folder ]] || step "Building kwok $KWOK_VERSION (about 70 s on 2 cores), once" build-kwok build
echo "KWOK=$folder/kwok"
echo "KWOK_STAGES=$folder/stages.yaml"
