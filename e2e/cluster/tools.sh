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
# scripts use. helm: 4 changed what the charts' tests look at.
suits() {
  local version
  version=$(minor "$(installed_version "$1")")
  case $1 in
    kind) [[ $version == "$(minor "$KIND_VERSION")" ]] ;;
    kubectl) [[ $version == 1.* && ${version#1.} -ge 33 ]] ;;
    helm) [[ $version == "$(minor "$HELM_VERSION")" || $version == 3.1[5-9] ]] ;;
    kubeconform) [[ $version == "$(minor "$KUBECONFORM_VERSION")" ]] ;;
  esac
}

build() {
  case $1 in
    kind)
      step "Building kind $KIND_VERSION (about 15 s on 2 cores), once" build-kind \
        go_binary kind "$KIND_VERSION" sigs.k8s.io/kind sigs.k8s.io/kind ;;
    helm)
      local version=helm.sh/helm/v3/internal/version
      step "Building helm $HELM_VERSION (about 100 s on 2 cores), once" build-helm \
        go_binary helm "$HELM_VERSION" helm.sh/helm/v3 helm.sh/helm/v3/cmd/helm "-X $version.version=$HELM_VERSION" ;;
    kubeconform)
      step "Building kubeconform $KUBECONFORM_VERSION (about 5 s on 2 cores), once" build-kubeconform \
        go_binary kubeconform "$KUBECONFORM_VERSION" github.com/yannh/kubeconform github.com/yannh/kubeconform/cmd/kubeconform \
        "-X main.version=$KUBECONFORM_VERSION" ;;
    kubectl) "$CLUSTER_DIR/k8s-binaries.sh" kubectl ;;
  esac
}

provide() {
  local tool=$1 version source
  case $tool in
    kind) version=$KIND_VERSION ;;
    kubectl) version=$KUBERNETES_VERSION ;;
    helm) version=$HELM_VERSION ;;
    kubeconform) version=$KUBECONFORM_VERSION ;;
    *) die "tools.sh: no tool $tool" ;;
  esac
  [[ ! -x $dir/$tool ]] || return 0
  if have "$tool" && suits "$tool"; then
    source=$(command -v "$tool")
  else
    source=$BIN_DIR/$tool-$version
    if [[ ! -x $source ]]; then
      lock "tool-$tool"
      [[ -x $source ]] || build "$tool"
    fi
  fi
  mkdir -p "$dir"
  ln -sfn "$source" "$dir/$tool"
}

(($#)) || set -- kind kubectl helm kubeconform
for tool in "$@"; do provide "$tool"; done
echo "$dir"
