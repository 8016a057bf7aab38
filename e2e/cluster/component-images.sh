#!/usr/bin/env bash
# component-images.sh NAME...: makes images of cluster components available in
# the engine and prints their names in the given order, one per line. NAME is one
# of kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, etcd,
# coredns, metrics-server, kube-network-policies.
#
# Pulled from registry.k8s.io where it can be reached, else built from source
# (k8s-binaries.sh) as corelane.local/NAME:VERSION. Programs are at the paths
# of the official images, so manifests and scripts need not know the difference.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

describe() { # NAME -> sets official version group programs path
  local k8s=$KUBERNETES_VERSION
  path=/usr/local/bin programs=("$1")
  case $1 in
    kube-apiserver | kube-controller-manager) official=registry.k8s.io/$1:$k8s version=$k8s group=apiserver ;;
    kube-scheduler | kube-proxy) official=registry.k8s.io/$1:$k8s version=$k8s group=kubernetes ;;
    etcd) official=registry.k8s.io/etcd:${ETCD_VERSION#v}-0 version=$ETCD_VERSION group=etcd programs=(etcd etcdctl) ;;
    coredns) official=registry.k8s.io/coredns/coredns:$COREDNS_VERSION version=$COREDNS_VERSION group=addons path=/ ;;
    metrics-server) official=registry.k8s.io/metrics-server/metrics-server:$METRICS_SERVER_VERSION \
      version=$METRICS_SERVER_VERSION group=addons path=/ ;;
    # The official one hands packets over by nftables' "queue", which not every kernel has.
    kube-network-policies) official= version=$KUBE_NETWORK_POLICIES_VERSION-$(hash_of "$CLUSTER_DIR/kube-network-policies/queue.go") \
      group=network-policies path=/ ;;
    *) die "component-images.sh: no component $1" ;;
  esac
}

# Static Go programs need nothing around them. kube-proxy does: it calls iptables.
component_image() { # NAME TAG
  local name=$1 tag=$2 context program
  context=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$context'" EXIT
  mkdir -p "$context/rootfs$path" "$context/rootfs/tmp"
  chmod 1777 "$context/rootfs/tmp"
  for program in "${programs[@]}"; do
    cp "$BIN_DIR/$program-$version" "$context/rootfs$path/$program"
  done
  {
    if [[ $name == kube-proxy ]]; then
      echo "FROM $base"
      echo "RUN apt-get update && apt-get install -y --no-install-recommends iptables nftables conntrack kmod \\"
      echo " && rm -rf /var/lib/apt/lists/*"
    else
      echo "FROM scratch"
    fi
    echo "COPY rootfs/ /"
    echo "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    echo "ENTRYPOINT [\"${path%/}/$name\"]"
  } >"$context/Dockerfile"
  DOCKER_BUILDKIT=0 docker build --network=host --label corelane.local/component=1 -t "$tag" "$context"
}

use_engine
lock component-images
for name in "$@"; do
  describe "$name"
  tag=$STANDIN/$name:$version
  if image_exists "$tag"; then echo "$tag"; continue; fi
  if [[ -n $official ]] && pull "$official"; then echo "$pulled"; continue; fi
  "$CLUSTER_DIR/k8s-binaries.sh" "$group"
  base=
  [[ $name != kube-proxy ]] || base=$("$CLUSTER_DIR/base-images.sh" debian | sed -n 's/^DEBIAN_IMAGE=//p')
  step "Packing $name $version as an image" "image-$name" component_image "$name" "$tag"
  echo "$tag"
done
