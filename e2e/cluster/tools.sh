#!/usr/bin/env bash
# tools.sh [kind|kubectl|helm|kubeconform]...: makes these programs available
# (default: all) and prints the directory that holds them:
#
#   PATH=$(e2e/cluster/tools.sh):$PATH
#
# One that is installed already is used if its version suits; else it is built
# from the Go module proxy, pinned in versions.env.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"

dir=$CACHE_DIR/tools-$(hash_of "$KIND_VERSION" "$KUBERNETES_VERSION" "$HELM_VERSION" "$KUBECONFORM_VERSION")

minor() { sed -E 's/^v?([0-9]+)\.([0-9]+).*/\1.\2/' <<<"$1"; }

installed_version() {
  case $1 in
    kind) kind version -q ;;
    kubectl) kubectl version --client -o json | sed -n 's/.*"gitVersion": "\([^"]*\)".*/\1/p' ;;
    helm) helm version --template '{{.Version}}' ;;
    kubeconform) kubeconform -v ;;
  esac 2>/dev/null || true
}

# kind: its node images belong to the release. kubectl: 1.33 has all that our
# scripts use. helm: 3.17 has --take-ownership, 4 changed what the charts' tests look at.
suits() {
  local version
  version=$(minor "$(installed_version "$1")")
  case $1 in
    kind) [[ $version == "$(minor "$KIND_VERSION")" ]] ;;
    kubectl) [[ $version == 1.* && ${version#1.} -ge 33 ]] ;;
    helm) [[ $version == 3.* && ${version#3.} -ge 17 ]] ;;
    kubeconform) [[ $version == "$(minor "$KUBECONFORM_VERSION")" ]] ;;
  esac
}

build() {
  case $1 in
    kubeconform)
      build_alone github.com/yannh/kubeconform github.com/yannh/kubeconform/cmd/kubeconform "-X main.version=$KUBECONFORM_VERSION" ;;
    *) to_build+=("$1") ;;
  esac
}
build_alone() { # MODULE PACKAGE LDFLAGS: $tool, which is not of the one module
  lock "tool-$tool"
  [[ -x $path ]] ||
    step "Building $tool $version (about 10 s on 2 cores), once" "build-$tool" go_binary "$tool" "$version" "$@"
}

to_build=()
# provide TOOL: a link to it in $dir; it may still have to be built.
provide() {
  local tool=$1 path version
  case $tool in
    kind | kubectl | helm) path=$(binary "$tool") ;;
    kubeconform) version=$KUBECONFORM_VERSION path=$BIN_DIR/$tool-$version ;;
    *) die "tools.sh: no tool $tool" ;;
  esac
  [[ ! -x $dir/$tool ]] || return 0
  if have "$tool" && suits "$tool"; then
    path=$(command -v "$tool")
  elif [[ ! -x $path ]]; then
    build "$tool"
  fi
  mkdir -p "$dir"
  ln -sfn "$path" "$dir/$tool"
}

(($#)) || set -- kind kubectl helm kubeconform
for tool in "$@"; do provide "$tool"; done
go_programs "${to_build[@]}"
echo "$dir"
