#!/usr/bin/env bash
# pin-go.sh: writes the hashes of all Go modules that go into the programs we build from source: build/go.mod and
# build/go.sum for those of one module, go.sum for the others. Run it after a change of a Go program's version in
# versions.env (or with a new program in the tables below), and commit the result. It asks the module proxy, and
# believes what the checksum database of Go (GOSUMDB) confirms. Later builds believe these files only: gobuild.sh builds
# with -mod=readonly, and Go refuses what is not there as it is.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"

[[ $(go env GOSUMDB) != off && -z $(go env GONOSUMDB) ]] ||
  die "pin-go.sh needs Go's checksum database: unset GOSUMDB, GONOSUMDB and GOPRIVATE"

sums=$(mktemp -d)
trap 'rm -rf "$sums"' EXIT

NODES='linux/amd64 linux/arm64'
LAPTOPS="$NODES darwin/amd64 darwin/arm64"

# pin PLATFORMS MODULE VERSION PACKAGE...: the hashes of what these packages are made of. Other platforms import other
# modules, and so do programs with C in them (CGO_ENABLED=1).
pin() {
  local platforms=$1 module=$2 version=$3
  shift 3
  say "$module $version"
  (GO_SUM=${known:-/dev/null} go_module_build "$module" "$version" pin_packages "$platforms" "$sums/${module//\//_}" "$@")
}
pin_packages() {
  local platforms=$1 result=$2 platform
  shift 2
  export GOFLAGS=-mod=mod
  for platform in $platforms; do
    GOOS=${platform%/*} GOARCH=${platform#*/} go list -deps -tags "${tags:-}" "$@" >/dev/null
  done
  cp go.sum "$result"
}

# ---- The one module ----

# Kubernetes' own go.mod points its staging modules (k8s.io/api, ...) at folders that are not part of the published
# module; the same code is published as k8s.io/X, of Kubernetes v1.N.P with the tag v0.N.P.
staging_modules() {
  go mod download "k8s.io/kubernetes@$KUBERNETES_VERSION"
  # In a replace block, or required as v0.0.0.
  sed -nE -e 's#^[[:space:]]*(k8s\.io/[a-z0-9-]+) => \./staging.*#\1#p' \
    -e 's#^[[:space:]]*(k8s\.io/[a-z0-9-]+) v0\.0\.0$#\1#p' \
    "$(go env GOMODCACHE)/cache/download/k8s.io/kubernetes/@v/$KUBERNETES_VERSION.mod" | sort -u
}

# What is required here is the least: other programs of the module may ask for a newer one of the libraries they share.
pin_module() {
  local module platform name version package packages=() tools=()
  cd "$GO_MODULE_DIR"
  export GOFLAGS=-mod=mod
  for module in $(staging_modules); do
    go mod edit -replace "$module=$module@$KUBERNETES_STAGING_VERSION"
  done
  go mod edit -require "k8s.io/kubernetes@$KUBERNETES_VERSION" -require "go.etcd.io/etcd/server/v3@$ETCD_VERSION" \
    -require "go.etcd.io/etcd/etcdctl/v3@$ETCD_VERSION" -require "sigs.k8s.io/kind@$KIND_VERSION" \
    -require "helm.sh/helm/v3@$HELM_VERSION" -require "github.com/coredns/coredns@$COREDNS_VERSION" \
    -require "sigs.k8s.io/metrics-server@$METRICS_SERVER_VERSION" -require "sigs.k8s.io/cri-tools@$CRICTL_VERSION" \
    -require "github.com/containerd/containerd/v2@$CONTAINERD_VERSION" \
    -require "github.com/containernetworking/plugins@$CNI_PLUGINS_VERSION"
  for name in "${GO_PROGRAMS[@]}"; do program "$name"; packages+=("$package"); done
  for name in kind kubectl helm; do program "$name"; tools+=("$package"); done
  rm -f go.sum
  for platform in $LAPTOPS; do
    [[ $platform == linux/* ]] || packages=("${tools[@]}")
    GOOS=${platform%/*} GOARCH=${platform#*/} go list -deps "${packages[@]}" >/dev/null
  done
}
say "the programs of build/go.mod"
(pin_module)
say "$(wc -l <"$GO_MODULE_DIR/go.sum") hashes in $GO_MODULE_DIR/go.sum"

# ---- Those with a module of their own ----

CGO_ENABLED=1 tags='seccomp,netgo,osusergo' pin "$NODES" github.com/opencontainers/runc "$RUNC_VERSION" github.com/opencontainers/runc
# The checksum database does not answer for two modules of it everywhere: those hashes are in a file beside it.
policies=sigs.k8s.io/kube-network-policies
known=$CLUSTER_DIR/kube-network-policies/go.sum \
  pin "$NODES" $policies "$KUBE_NETWORK_POLICIES_VERSION" $policies/cmd
pin "$LAPTOPS" github.com/yannh/kubeconform "$KUBECONFORM_VERSION" github.com/yannh/kubeconform/cmd/kubeconform
pin "$LAPTOPS" github.com/anchore/syft "$SYFT_VERSION" github.com/anchore/syft/cmd/syft
registry=github.com/google/go-containerregistry
pin "$LAPTOPS" $registry "$CRANE_VERSION" $registry/cmd/crane
pin "$LAPTOPS" knative.dev/serving "$QUEUE_PROXY_VERSION" knative.dev/serving/cmd/queue
pin "$NODES" sigs.k8s.io/kwok "$KWOK_VERSION" sigs.k8s.io/kwok/cmd/kwok

# Of KEDA and gitops-engine the module alone: the modules that it is made of have their hashes in its own go.sum, which
# is part of it.
pin_whole() {
  local sum mod_sum
  sum=$(go mod download -json "$1@$2" | sed -n 's/^[[:space:]]*"Sum": "\(.*\)",*$/\1/p')
  mod_sum=$(go mod download -json "$1@$2" | sed -n 's/^[[:space:]]*"GoModSum": "\(.*\)",*$/\1/p')
  [[ -n $sum && -n $mod_sum ]] || die "pin-go.sh: no hashes of $1 $2"
  printf '%s\n' "$1 $2 $sum" "$1 $2/go.mod $mod_sum" >"$sums/${1//\//_}"
}
pin_whole github.com/kedacore/keda/v2 "$KEDA_VERSION"
pin_whole github.com/argoproj/gitops-engine "$GITOPS_ENGINE_VERSION"

LC_ALL=C sort -u "$sums"/* >"$GO_SUM"
say "$(wc -l <"$GO_SUM") hashes in $GO_SUM"
