#!/usr/bin/env bash
# node-image.sh [--quick]: makes the image of the kind nodes available and prints its name: kindest/node where it can be
# pulled, else corelane.local/kind-node:..., built the way kind builds its own (images/base/Dockerfile and
# pkg/build/nodeimage in kind's Go module, from which the static files come). The hash covers all inputs, so an old
# image is never mistaken for a new one.
#
# With --quick (the demo) it has Debian's containerd, runc and CNI plug-ins, and no images of metrics-server and
# kube-network-policies; docs/adr/0029-two-node-images.md. If the other one is there already, it is that one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"

quick=
[[ ${1:-} != --quick ]] || quick=1

name_of() { # quick | full
  local inputs=("$KIND_VERSION $KIND_NODE_DEBIAN_SUITE $ETCD_VERSION $COREDNS_VERSION"
    "$CLUSTER_DIR"/{node-image.sh,pause.go} "$GO_MODULE_DIR"/{go.mod,coredns/main.go})
  [[ $1 == quick ]] || inputs+=("$CONTAINERD_VERSION $RUNC_VERSION $CNI_PLUGINS_VERSION $CRICTL_VERSION"
    "$METRICS_SERVER_VERSION $KUBE_NETWORK_POLICIES_VERSION" "$CLUSTER_DIR/kube-network-policies/queue.go")
  echo "$STANDIN/kind-node:$KUBERNETES_VERSION-$1-$(hash_of "${inputs[@]}")"
}

debian_packages='systemd conntrack iptables nftables iproute2 ethtool util-linux mount kmod
  libseccomp2 pigz bash ca-certificates curl jq procps'

# What needs no program of ours: made while these are being compiled.
system_dockerfile() {
  echo "FROM $base"
  # shellcheck disable=SC2086
  echo RUN apt-get update '&&' DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    $debian_packages ${quick:+containerd runc containernetworking-plugins} '&&' rm -rf '/var/lib/apt/lists/*'
  # kind's files name these paths.
  [[ -z $quick ]] || echo 'RUN ln -s /usr/bin/containerd* /usr/bin/ctr /usr/local/bin/ \
 && ln -s /usr/sbin/runc /usr/local/sbin/ \
 && mkdir -p /opt/cni && ln -s /usr/lib/cni /opt/cni/bin'
  cat <<'DOCKERFILE'
RUN find /lib/systemd/system/sysinit.target.wants/ -name systemd-tmpfiles-setup.service -delete \
    && rm -f /lib/systemd/system/multi-user.target.wants/* /etc/systemd/system/*.wants/* \
             /lib/systemd/system/local-fs.target.wants/* \
             /lib/systemd/system/sockets.target.wants/*udev* /lib/systemd/system/sockets.target.wants/*initctl* \
             /lib/systemd/system/basic.target.wants/* \
    && echo ReadKMsg=no >>/etc/systemd/journald.conf \
    && ln -sf /usr/lib/systemd/systemd /sbin/init
DOCKERFILE
}
system_image=$STANDIN/kind-node-system:$KIND_NODE_DEBIAN_SUITE${quick:+-quick}-$(hash_of "${BASH_SOURCE[0]}")
make_system_image() {
  local base
  image_exists "$system_image" && return
  base=$("$CLUSTER_DIR/base-images.sh" kind-node | sed -n 's/^KIND_NODE_BASE_IMAGE=//p')
  step "Installing Debian packages of the kind node" node-system system_image_build
}
system_image_build() { system_dockerfile | DOCKER_BUILDKIT=0 docker build --network=host -t "$system_image" -; }

# The classic builder has neither COPY --chmod nor heredocs: modes are set here.
fill_context() {
  local root=$context/rootfs source program
  in_go_module go mod download sigs.k8s.io/kind
  source=$(in_go_module go list -m -f '{{.Dir}}' sigs.k8s.io/kind)/images/base/files
  mkdir -p "$root"/{kind/manifests,LICENSES,usr/local/sbin,usr/bin,etc/kubernetes/manifests}
  cp -r "$source/." "$root/" # the module cache is read-only, copies must not be
  chmod -R u+w,go+rX "$root"
  find "$root" -type f -exec chmod 644 {} +
  chmod 755 "$root"/usr/local/bin/* "$root"/kind/bin/*

  # Not /usr/local/bin: the kubelet's unit file names this path.
  for program in kubeadm kubelet kubectl; do place "$(binary $program)" "$root/usr/bin/$program"; done
  if [[ -z $quick ]]; then
    for program in containerd containerd-shim-runc-v2 ctr crictl; do
      place "$(binary $program)" "$root/usr/local/bin/$program"
    done
    place "$BIN_DIR/runc-$RUNC_VERSION" "$root/usr/local/sbin/runc"
    mkdir -p "$root/opt/cni/bin"
    for program in "${cni_plugins[@]}"; do place "$(binary "$program")" "$root/opt/cni/bin/$program"; done
  fi

  # kind reads the version from here, and applies this manifest to every cluster.
  # Our tests need no volumes; a provisioner would be one more image to build.
  echo "$KUBERNETES_VERSION" >"$root/kind/version"
  cat >"$root/kind/manifests/default-storage.yaml" <<'MANIFEST'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
MANIFEST

  cat >"$context/Dockerfile" <<DOCKERFILE
FROM $system_image
COPY rootfs/ /
RUN systemctl enable kubelet.service containerd.service undo-mount-hacks.service \
    && systemctl mask systemd-binfmt.service \
    && ctr oci spec | jq '.hooks.createContainer[.hooks.createContainer|length] |= . + {"path": "/kind/bin/mount-product-files.sh"} | del(.process.rlimits)' >/etc/containerd/cri-base.json \
    && runc --version && containerd --version && kubeadm version -o short
ENV container=docker
STOPSIGNAL SIGRTMIN+3
ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]
DOCKERFILE
}

# pause is asked for by containerd under the name in its configuration, the other
# images by kubeadm under names it can list; ours are only tagged so.
component_tags() {
  local wanted ours name
  docker build --network=host -t "$STANDIN/pause:latest" "$context/pause"
  wanted=$(sed -nE 's/^ *sandbox_image = "(.*)"/\1/p' "$context/rootfs/etc/containerd/config.toml")
  docker tag "$STANDIN/pause:latest" "$wanted"
  echo "$wanted" >"$context/tags"
  for wanted in $("$(binary kubeadm)" config images list --kubernetes-version "$KUBERNETES_VERSION"); do
    name=${wanted##*/}
    name=${name%%:*}
    [[ $name != pause ]] || continue
    ours=$(sed -n "s/^$name=//p" <<<"$components")
    docker tag "$ours" "$wanted"
    echo "$wanted" >>"$context/tags"
  done
  [[ -z $quick ]] || return 0
  # By the names that the manifests beside this script have.
  for wanted in metrics-server/metrics-server:$METRICS_SERVER_VERSION \
    networking/kube-network-policies:$KUBE_NETWORK_POLICIES_VERSION; do
    name=${wanted##*/}
    wanted=registry.k8s.io/$wanted
    docker tag "$(sed -n "s/^${name%%:*}=//p" <<<"$components")" "$wanted"
    echo "$wanted" >>"$context/tags"
  done
}

import_images() { # CONTAINER
  docker exec -d "$1" containerd --log-level warn
  wait_until 20 docker exec "$1" ctr version
  # One archive, so that shared layers travel once. Pinned: the kubelet must not
  # collect what it cannot pull again.
  # shellcheck disable=SC2046
  docker save $(cat "$context/tags") |
    docker exec -i "$1" ctr -n k8s.io images import --label=io.cri-containerd.pinned=pinned \
      --all-platforms --no-unpack --digests -
  docker exec "$1" ctr -n k8s.io images list -q
  docker exec "$1" sh -c 'kill $(pidof containerd); while pidof containerd; do sleep 0.1; done'
}

# Only names go; the layers belong to the images that stay.
remove_scaffolding() {
  docker rm -f -v "$builder"
  # shellcheck disable=SC2046
  docker image rm "$image-base" "$STANDIN/pause:latest" $(cat "$context/tags")
  rm -rf "$context"
} >/dev/null 2>&1

build_image() {
  context=$(mktemp -d)
  builder=corelane-node-image-$$
  trap remove_scaffolding EXIT
  export DOCKER_BUILDKIT=0

  mkdir -p "$context/pause"
  CGO_ENABLED=0 GOFLAGS='' go build -trimpath -ldflags '-s -w' -o "$context/pause/pause" "$CLUSTER_DIR/pause.go"
  printf 'FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n' >"$context/pause/Dockerfile"

  fill_context
  component_tags
  docker build --network=host -t "$image-base" "$context"
  docker run -d --name "$builder" --entrypoint sleep --security-opt seccomp=unconfined "$image-base" infinity
  import_images "$builder"
  # The tag comes last: an image of this name is a finished one.
  docker commit --change 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' "$builder" "$image"
}

use_engine
lock node-image
full=$(name_of full)
if image_exists "$full"; then echo "$full"; exit; fi
image=$full
[[ -z $quick ]] || image=$(name_of quick)
if image_exists "$image"; then echo "$image"; exit; fi
for official in $KIND_NODE_IMAGES; do
  if pull "$official"; then echo "$official"; exit; fi
done

export CORELANE_LINES=1
cni_plugins=(ptp host-local portmap loopback)
names=(kube-apiserver kube-controller-manager kube-scheduler kube-proxy etcd coredns)
# And kind, which its caller will want: what is built at once is built sooner.
programs=(kubelet kubeadm kubectl kind)
if [[ -z $quick ]]; then
  names+=(metrics-server kube-network-policies)
  programs+=(containerd containerd-shim-runc-v2 ctr crictl runc "${cni_plugins[@]}")
fi
make_system_image & beside=$!
images=$("$CLUSTER_DIR/component-images.sh" "${names[@]}" -- "${programs[@]}")
components=$(paste -d= <(printf '%s\n' "${names[@]}") - <<<"$images")
wait "$beside"
step "Building the kind node image (about 30 s), once" node-image build_image
echo "$image"
