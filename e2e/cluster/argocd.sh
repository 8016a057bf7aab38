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

in_source() { # COMMAND...
  cd "$source"
  GOFLAGS=$GO_FLAGS CGO_ENABLED=0 nice -n 10 "$@"
}

list_packages() {
  in_source go list -deps $GO_COMPILER_FLAGS -f '{{if and .Stale (ne .Name "main")}}{{.ImportPath}}{{end}}' \
    ./cmd/argocd-diff >"$LOG_DIR/argocd-packages"
}

# A build cut short must not leave something that looks finished.
build() {
  mkdir -p "$BIN_DIR"
  in_source go build $GO_COMPILER_FLAGS -ldflags '-s -w' -o "$binary.part" ./cmd/argocd-diff
  mv "$binary.part" "$binary"
}

lock argocd
if [[ ! -x $binary ]]; then
  have go || die "Go is needed to build Argo CD's comparison"
  source=$(mktemp -d)/gitops-engine
  # shellcheck disable=SC2064
  trap "rm -rf '${source%/gitops-engine}'" EXIT
  step "Fetching gitops-engine $GITOPS_ENGINE_VERSION" argocd-source fetch
  step 'Fetching the Go modules of gitops-engine' argocd-modules list_packages
  count=$(wc -l <"$LOG_DIR/argocd-packages")
  step "Compiling Argo CD's comparison: $count packages$(about_packages "$count"), once" argocd-build build
fi
echo "ARGOCD_DIFF=$binary"
