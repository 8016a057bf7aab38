#!/usr/bin/env bash
# k8s-binaries.sh [GROUP...]: builds the programs of a cluster from source, for
# machines that can reach the Go module proxy but no image registry.
#
# Groups: etcd, apiserver (kube-apiserver and kube-controller-manager, all that
# apiserver.sh needs), kubernetes (everything of Kubernetes), kubectl, node (containerd,
# runc, CNI plugins, crictl), addons (CoreDNS, metrics-server), network-policies
# (kube-network-policies), sources. Default: all.
# The result is ~/.cache/corelane/bin/NAME-VERSION.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"

# The programs are for the nodes. Elsewhere Docker comes with a registry anyway.
[[ $(uname) == Linux ]] || die "k8s-binaries.sh builds on Linux only; check that Docker can pull images, and install kubectl"

built() { # VERSION NAME...
  local version=$1 name
  shift
  for name in "$@"; do [[ -x $BIN_DIR/$name-$version ]] || return 1; done
}

# True if something is to be built. The lock is taken only then, so that a run
# with everything in the cache does not wait for another one that builds.
missing() {
  if built "$@"; then return 1; fi
  lock k8s-binaries
  ! built "$@"
}

# kubeadm reads the version that is linked in and refuses to work without one.
kubernetes_ldflags() {
  local version=${KUBERNETES_VERSION#v} package
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf -- '-X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s -X %s.gitTreeState=clean ' \
      "$package" "$KUBERNETES_VERSION" "$package" "${version%%.*}" "$package" "$(cut -d. -f2 <<<"$version")" "$package"
  done
}

kubernetes_build() { # NAME...
  local name packages=() out=$BIN_DIR/.kubernetes
  for name in "$@"; do packages+=("k8s.io/kubernetes/cmd/$name"); done
  mkdir -p "$out"
  nice -n 10 go build -ldflags "-s -w $(kubernetes_ldflags)" -o "$out/" "${packages[@]}"
  for name in "$@"; do mv "$out/$name" "$BIN_DIR/$name-$KUBERNETES_VERSION"; done
}

apiserver() {
  missing "$KUBERNETES_VERSION" kube-apiserver kube-controller-manager || return 0
  step "Building the Kubernetes API server and controller manager (about 6 min on 2 cores), once" build-apiserver \
    go_module_build k8s.io/kubernetes "$KUBERNETES_VERSION" kubernetes_build kube-apiserver kube-controller-manager
}

kubernetes() {
  apiserver
  missing "$KUBERNETES_VERSION" kube-scheduler kube-proxy kubelet kubeadm kubectl || return 0
  step "Building the other Kubernetes programs (about 1 min on 2 cores), once" build-kubernetes \
    go_module_build k8s.io/kubernetes "$KUBERNETES_VERSION" kubernetes_build kube-scheduler kube-proxy kubelet kubeadm kubectl
}

kubectl() {
  missing "$KUBERNETES_VERSION" kubectl || return 0
  step "Building kubectl $KUBERNETES_VERSION (about 1 min on 2 cores), once" build-kubectl \
    go_module_build k8s.io/kubernetes "$KUBERNETES_VERSION" kubernetes_build kubectl
}

etcd() {
  missing "$ETCD_VERSION" etcd etcdctl || return 0
  step "Building etcd $ETCD_VERSION (about 1 min on 2 cores), once" build-etcd etcd_build
}
etcd_build() {
  (go_binary etcd "$ETCD_VERSION" go.etcd.io/etcd/server/v3 go.etcd.io/etcd/server/v3)
  (go_binary etcdctl "$ETCD_VERSION" go.etcd.io/etcd/etcdctl/v3 go.etcd.io/etcd/etcdctl/v3)
}

node() {
  missing "$CONTAINERD_VERSION" containerd containerd-shim-runc-v2 ctr || missing "$RUNC_VERSION" runc ||
    missing "$CRICTL_VERSION" crictl || missing "$CNI_PLUGINS_VERSION" ptp host-local portmap loopback || return 0
  # runc is the one program with C in it. It is linked statically: the node image
  # may be of another Debian release than this machine.
  apt_install gcc libc6-dev libseccomp-dev pkg-config
  step "Building containerd, runc, CNI plugins and crictl (about 2 min on 2 cores), once" build-node node_build
}
node_build() {
  local module=github.com/containerd/containerd/v2 name
  for name in containerd containerd-shim-runc-v2 ctr; do
    built "$CONTAINERD_VERSION" $name ||
      (go_binary $name "$CONTAINERD_VERSION" $module $module/cmd/$name "-X $module/version.Version=$CONTAINERD_VERSION")
  done
  built "$RUNC_VERSION" runc ||
    (CGO_ENABLED=1 go_binary runc "$RUNC_VERSION" github.com/opencontainers/runc github.com/opencontainers/runc \
      '-extldflags -static' 'seccomp,netgo,osusergo')
  for name in main/ptp main/loopback ipam/host-local meta/portmap; do
    built "$CNI_PLUGINS_VERSION" "${name#*/}" ||
      (go_binary "${name#*/}" "$CNI_PLUGINS_VERSION" github.com/containernetworking/plugins \
        "github.com/containernetworking/plugins/plugins/$name")
  done
  built "$CRICTL_VERSION" crictl ||
    (go_binary crictl "$CRICTL_VERSION" sigs.k8s.io/cri-tools sigs.k8s.io/cri-tools/cmd/crictl \
      "-X sigs.k8s.io/cri-tools/pkg/version.Version=$CRICTL_VERSION")
}

addons() {
  missing "$COREDNS_VERSION" coredns || missing "$METRICS_SERVER_VERSION" metrics-server || return 0
  step "Building CoreDNS and metrics-server (about 6 min on 2 cores), once" build-addons addons_build
}
addons_build() {
  built "$COREDNS_VERSION" coredns ||
    (go_binary coredns "$COREDNS_VERSION" github.com/coredns/coredns github.com/coredns/coredns)
  built "$METRICS_SERVER_VERSION" metrics-server ||
    (go_binary metrics-server "$METRICS_SERVER_VERSION" sigs.k8s.io/metrics-server sigs.k8s.io/metrics-server/cmd/metrics-server)
}

# One file of its nftables library is ours: see there.
network-policies() {
  local queue=$CLUSTER_DIR/kube-network-policies/queue.go name_version
  name_version=$KUBE_NETWORK_POLICIES_VERSION-$(hash_of "$queue")
  missing "$name_version" kube-network-policies || return 0
  step "Building kube-network-policies (about 1 min on 2 cores), once" build-network-policies \
    go_module_build sigs.k8s.io/kube-network-policies "$KUBE_NETWORK_POLICIES_VERSION" network_policies_build
}
network_policies_build() {
  local nftables=github.com/google/nftables
  go mod download "sigs.k8s.io/kube-network-policies@$KUBE_NETWORK_POLICIES_VERSION"
  cp -r "$(go mod download -json "$nftables@$(go list -m -f '{{.Version}}' $nftables)" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')" nftables
  chmod -R u+w nftables
  cp "$queue" nftables/expr/queue.go
  go mod edit -replace $nftables=./nftables
  nice -n 10 go build -ldflags '-s -w' -o "$BIN_DIR/.kube-network-policies-$name_version" sigs.k8s.io/kube-network-policies/cmd
  mv "$BIN_DIR/.kube-network-policies-$name_version" "$BIN_DIR/kube-network-policies-$name_version"
}

# node-image.sh takes static files from the source of kind: here they come into Go's
# module cache, as $GO_SUM wants them.
sources() { (go_module_build sigs.k8s.io/kind "$KIND_VERSION" go mod download sigs.k8s.io/kind); }

(($#)) || set -- etcd apiserver kubernetes node addons network-policies sources
for group in "$@"; do
  case $group in
    etcd | apiserver | kubernetes | kubectl | node | addons | network-policies | sources) "$group" ;;
    *) die "k8s-binaries.sh: no group $group" ;;
  esac
done
