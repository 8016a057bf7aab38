#!/usr/bin/env bash
# pin-go.sh: writes e2e/cluster/go.sum, the hashes of all Go modules that go into the programs we build from source.
# Run it after a change of a Go program's version in versions.env (or with a new program in the table below), and
# commit the result. It asks the module proxy, and believes what the checksum database of Go (GOSUMDB) confirms.
# Later builds believe go.sum only: gobuild.sh builds with -mod=readonly, and Go refuses what is not there as it is.
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

kubernetes=k8s.io/kubernetes/cmd
pin "$LAPTOPS" k8s.io/kubernetes "$KUBERNETES_VERSION" $kubernetes/kubectl
mv "$sums/k8s.io_kubernetes" "$sums/kubectl"
pin "$NODES" k8s.io/kubernetes "$KUBERNETES_VERSION" \
  $kubernetes/{kube-apiserver,kube-controller-manager,kube-scheduler,kube-proxy,kubelet,kubeadm}
pin "$NODES" go.etcd.io/etcd/server/v3 "$ETCD_VERSION" go.etcd.io/etcd/server/v3
pin "$NODES" go.etcd.io/etcd/etcdctl/v3 "$ETCD_VERSION" go.etcd.io/etcd/etcdctl/v3
containerd=github.com/containerd/containerd/v2
pin "$NODES" $containerd "$CONTAINERD_VERSION" $containerd/cmd/{containerd,containerd-shim-runc-v2,ctr}
CGO_ENABLED=1 tags='seccomp,netgo,osusergo' pin "$NODES" github.com/opencontainers/runc "$RUNC_VERSION" github.com/opencontainers/runc
plugins=github.com/containernetworking/plugins
pin "$NODES" $plugins "$CNI_PLUGINS_VERSION" $plugins/plugins/{main/ptp,main/loopback,ipam/host-local,meta/portmap}
pin "$NODES" sigs.k8s.io/cri-tools "$CRICTL_VERSION" sigs.k8s.io/cri-tools/cmd/crictl
pin "$NODES" github.com/coredns/coredns "$COREDNS_VERSION" github.com/coredns/coredns
pin "$NODES" sigs.k8s.io/metrics-server "$METRICS_SERVER_VERSION" sigs.k8s.io/metrics-server/cmd/metrics-server
# The checksum database does not answer for two modules of it everywhere: those hashes are in a file beside it.
policies=sigs.k8s.io/kube-network-policies
known=$CLUSTER_DIR/kube-network-policies/go.sum \
  pin "$NODES" $policies "$KUBE_NETWORK_POLICIES_VERSION" $policies/cmd
pin "$LAPTOPS" sigs.k8s.io/kind "$KIND_VERSION" sigs.k8s.io/kind
pin "$LAPTOPS" helm.sh/helm/v3 "$HELM_VERSION" helm.sh/helm/v3/cmd/helm
pin "$LAPTOPS" github.com/yannh/kubeconform "$KUBECONFORM_VERSION" github.com/yannh/kubeconform/cmd/kubeconform
pin "$LAPTOPS" github.com/anchore/syft "$SYFT_VERSION" github.com/anchore/syft/cmd/syft
registry=github.com/google/go-containerregistry
pin "$LAPTOPS" $registry "$CRANE_VERSION" $registry/cmd/crane
pin "$LAPTOPS" knative.dev/serving "$QUEUE_PROXY_VERSION" knative.dev/serving/cmd/queue

LC_ALL=C sort -u "$sums"/* >"$GO_SUM"
say "$(wc -l <"$GO_SUM") hashes in $GO_SUM"
