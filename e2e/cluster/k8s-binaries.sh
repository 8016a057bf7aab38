#!/usr/bin/env bash
# k8s-binaries.sh NAME...: builds programs of a cluster from source, for machines that can reach the Go module proxy but
# no image registry. NAME is a program that gobuild.sh knows (all of them are built at once), runc, or
# kube-network-policies.
# The result is ~/.cache/corelane/bin/NAME-VERSION.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"

# The programs are for the nodes. Elsewhere Docker comes with a registry anyway.
[[ $(uname) == Linux ]] || die "k8s-binaries.sh builds on Linux only; check that Docker can pull images, and install kubectl"

# runc is the one program with C in it. It is linked statically: the node image may be of another Debian release than
# this machine.
runc() {
  [[ ! -x $BIN_DIR/runc-$RUNC_VERSION ]] || return 0
  lock runc
  [[ ! -x $BIN_DIR/runc-$RUNC_VERSION ]] || return 0
  apt_install gcc libc6-dev libseccomp-dev pkg-config
  step "Building runc (about 10 s on 2 cores), once" build-runc runc_build
}
runc_build() {
  CGO_ENABLED=1 go_binary runc "$RUNC_VERSION" github.com/opencontainers/runc github.com/opencontainers/runc \
    '-extldflags -static' 'seccomp,netgo,osusergo'
}

# One file of its nftables library is ours: see there.
network_policies() {
  local queue=$CLUSTER_DIR/kube-network-policies/queue.go name_version
  name_version=$KUBE_NETWORK_POLICIES_VERSION-$(hash_of "$queue")
  [[ ! -x $BIN_DIR/kube-network-policies-$name_version ]] || return 0
  lock network-policies
  [[ ! -x $BIN_DIR/kube-network-policies-$name_version ]] || return 0
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
  nice -n 10 go build $GO_COMPILER_FLAGS -ldflags '-s -w' -o "$BIN_DIR/.kube-network-policies-$name_version" \
    sigs.k8s.io/kube-network-policies/cmd
  mv "$BIN_DIR/.kube-network-policies-$name_version" "$BIN_DIR/kube-network-policies-$name_version"
}

names=()
for name in "$@"; do
  case $name in
    runc) runc ;;
    kube-network-policies) network_policies ;;
    *) names+=("$name") ;;
  esac
done
go_programs "${names[@]}"
