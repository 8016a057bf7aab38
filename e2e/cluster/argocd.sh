#!/usr/bin/env bash
# argocd.sh: makes Argo CD's own comparison available, for `make test-argocd`: the library gitops-engine with our main
# program (e2e/argocd/build/main.go). The script builds it once, in the module of GITOPS_ENGINE_VERSION. The program's
# name in the cache holds the version and a hash of main.go. Prints
#
#   ARGOCD_DIFF=...    the program; main.go says how to call it
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"

program_source=$CLUSTER_DIR/../argocd/build/main.go
binary=$BIN_DIR/argocd-diff-$GITOPS_ENGINE_VERSION-$(hash_of "$program_source")

fetch() {
  go_module_copy github.com/argoproj/gitops-engine "$GITOPS_ENGINE_VERSION" "$source"
  mkdir -p "$source/cmd/argocd-diff"
  cp "$program_source" "$source/cmd/argocd-diff/"
}

lock argocd
if [[ ! -x $binary ]]; then
  go_is_there "Argo CD's comparison"
  source=$(mktemp -d)/gitops-engine
  # shellcheck disable=SC2064
  trap "rm -rf '${source%/gitops-engine}'" EXIT
  step "Fetching gitops-engine $GITOPS_ENGINE_VERSION" argocd-source fetch
  go_compile "Argo CD's comparison" argocd "$source" "$binary" ./cmd/argocd-diff
fi
echo "ARGOCD_DIFF=$binary"
