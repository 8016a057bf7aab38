#!/usr/bin/env bash
# component-images.sh NAME... [-- PROGRAM...]: makes images of cluster components available in
# the engine and prints their names in the given order, one per line. NAME is one
# of kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, etcd,
# coredns, metrics-server, kube-network-policies.
#
# Pulled from registry.k8s.io where it can be reached, else built from source
# (k8s-binaries.sh) as corelane.local/NAME:VERSION. Programs are at the paths
# of the official images, so manifests and scripts need not know the difference.
# PROGRAM is built along with theirs, which is quicker than one after the other.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"

describe() { # NAME -> sets official version programs path
  local k8s=$KUBERNETES_VERSION
  path=/usr/local/bin programs=("$1")
  case $1 in
    kube-apiserver | kube-controller-manager | kube-scheduler | kube-proxy) official=registry.k8s.io/$1:$k8s version=$k8s ;;
    etcd) official=registry.k8s.io/etcd:${ETCD_VERSION#v}-0 version=$ETCD_VERSION programs=(etcd etcdctl) ;;
    coredns) official=registry.k8s.io/coredns/coredns:$COREDNS_VERSION path=/
      version=$(binary coredns) version=${version##*/coredns-} ;;
    metrics-server) official=registry.k8s.io/metrics-server/metrics-server:$METRICS_SERVER_VERSION \
      version=$METRICS_SERVER_VERSION path=/ ;;
    # The official one hands packets over by nftables' "queue", which not every kernel has.
    kube-network-policies) official= path=/ \
      version=$KUBE_NETWORK_POLICIES_VERSION-$(hash_of "$CLUSTER_DIR/kube-network-policies/queue.go") ;;
    *) die "component-images.sh: no component $1" ;;
  esac
}

program_file() { # PROGRAM
  if [[ $1 == kube-network-policies ]]; then echo "$BIN_DIR/$1-$version"; else binary "$1"; fi
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
    place "$(program_file "$program")" "$context/rootfs$path/$program"
  done
  {
    if [[ $name == kube-proxy ]]; then
      echo "FROM $proxy_base"
    else
      echo "FROM scratch"
    fi
    echo "COPY rootfs/ /"
    echo "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    echo "ENTRYPOINT [\"${path%/}/$name\"]"
  } >"$context/Dockerfile"
  DOCKER_BUILDKIT=0 docker build --network=host --label corelane.local/component=1 -t "$tag" "$context"
}

# All at once: the engine spends half of the time on writing.
component_images() { # NAME...
  local name pids=() pid
  for name in "$@"; do
    describe "$name"
    (component_image "$name" "$STANDIN/$name:$version") &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
}

# What kube-proxy's image is made on: it takes longer than all others, and needs no program.
proxy_base=$STANDIN/kube-proxy-base:$(hash_of "$DEBIAN_BASE" "${BASH_SOURCE[0]}")
make_proxy_base() {
  local base
  image_exists "$proxy_base" && return
  base=$("$CLUSTER_DIR/base-images.sh" debian | sed -n 's/^DEBIAN_IMAGE=//p')
  step "Preparing the image of kube-proxy" kube-proxy-base proxy_base_image "$base"
}
proxy_base_image() {
  printf '%s\n' "FROM $1" 'RUN apt-get update \
 && apt-get install -y --no-install-recommends iptables nftables conntrack kmod \
 && rm -rf /var/lib/apt/lists/*' | DOCKER_BUILDKIT=0 docker build --network=host -t "$proxy_base" -
}

use_engine
lock component-images
declare -A found=()
names=() to_build=() needs=()
while (($#)) && [[ $1 != -- ]]; do names+=("$1"); shift; done
(($# == 0)) || { shift; needs=("$@"); }
for name in "${names[@]}"; do
  describe "$name"
  tag=$STANDIN/$name:$version
  if image_exists "$tag"; then
    found[$name]=$tag
  elif [[ -n $official ]] && pull "$official"; then
    found[$name]=$pulled
  else
    to_build+=("$name")
  fi
done
if ((${#to_build[@]} + ${#needs[@]})); then
  export CORELANE_LINES=1
  for name in "${to_build[@]}"; do describe "$name"; needs+=("${programs[@]}"); done
  beside=
  if [[ " ${to_build[*]} " == *' kube-proxy '* ]]; then make_proxy_base & beside=$!; fi
  "$CLUSTER_DIR/k8s-binaries.sh" "${needs[@]}"
  [[ -z $beside ]] || wait "$beside"
  if ((${#to_build[@]})); then
    step "Packing ${#to_build[@]} components as images" component-images component_images "${to_build[@]}"
  fi
fi
for name in "${names[@]}"; do
  describe "$name"
  echo "${found[$name]:-$STANDIN/$name:$version}"
done
