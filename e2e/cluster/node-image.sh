#!/usr/bin/env bash
# node-image.sh: makes the image of the kind nodes available and prints its name: kindest/node where it can be pulled,
# else corelane.local/kind-node:v1.N.P-HASH, built the way kind builds its own (images/base/Dockerfile and
# pkg/build/nodeimage in kind's Go module, from which the static files come). The hash covers all inputs, so an old
# image is never mistaken for a new one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"

image=$STANDIN/kind-node:$KUBERNETES_VERSION-$(hash_of "$KIND_VERSION $KIND_NODE_DEBIAN_SUITE" \
  "$CONTAINERD_VERSION $RUNC_VERSION $CNI_PLUGINS_VERSION $CRICTL_VERSION" \
  "$ETCD_VERSION $COREDNS_VERSION $METRICS_SERVER_VERSION $KUBE_NETWORK_POLICIES_VERSION" \
  "$CLUSTER_DIR"/{node-image.sh,pause.go,kube-network-policies/queue.go})

# The classic builder has neither COPY --chmod nor heredocs: modes are set here.
fill_context() {
  local root=$context/rootfs source program
  go mod download "sigs.k8s.io/kind@$KIND_VERSION"
  source=$(go env GOMODCACHE)/sigs.k8s.io/kind@$KIND_VERSION/images/base/files
  mkdir -p "$root"/{kind/manifests,LICENSES,usr/local/sbin,usr/bin,opt/cni/bin,etc/kubernetes/manifests}
  cp -r "$source/." "$root/" # the module cache is read-only, copies must not be
  chmod -R u+w,go+rX "$root"
  find "$root" -type f -exec chmod 644 {} +
  chmod 755 "$root"/usr/local/bin/* "$root"/kind/bin/*

  for program in containerd containerd-shim-runc-v2 ctr; do
    cp "$BIN_DIR/$program-$CONTAINERD_VERSION" "$root/usr/local/bin/$program"
  done
  cp "$BIN_DIR/crictl-$CRICTL_VERSION" "$root/usr/local/bin/crictl"
  cp "$BIN_DIR/runc-$RUNC_VERSION" "$root/usr/local/sbin/runc"
  for program in ptp host-local portmap loopback; do
    cp "$BIN_DIR/$program-$CNI_PLUGINS_VERSION" "$root/opt/cni/bin/$program"
  done
  # Not /usr/local/bin: the kubelet's unit file names this path.
  for program in kubeadm kubelet kubectl; do
    cp "$BIN_DIR/$program-$KUBERNETES_VERSION" "$root/usr/bin/$program"
  done

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
FROM $base
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      systemd conntrack iptables nftables iproute2 ethtool util-linux mount kmod \
      libseccomp2 pigz bash ca-certificates curl jq procps \
    && rm -rf /var/lib/apt/lists/* \
    && find /lib/systemd/system/sysinit.target.wants/ -name systemd-tmpfiles-setup.service -delete \
    && rm -f /lib/systemd/system/multi-user.target.wants/* /etc/systemd/system/*.wants/* \
             /lib/systemd/system/local-fs.target.wants/* \
             /lib/systemd/system/sockets.target.wants/*udev* /lib/systemd/system/sockets.target.wants/*initctl* \
             /lib/systemd/system/basic.target.wants/* \
    && echo ReadKMsg=no >>/etc/systemd/journald.conf \
    && ln -sf /usr/lib/systemd/systemd /sbin/init
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
  for wanted in $("$BIN_DIR/kubeadm-$KUBERNETES_VERSION" config images list --kubernetes-version "$KUBERNETES_VERSION"); do
    name=${wanted##*/}
    name=${name%%:*}
    [[ $name != pause ]] || continue
    ours=$(sed -n "s/^$name=//p" <<<"$components")
    docker tag "$ours" "$wanted"
    echo "$wanted" >>"$context/tags"
  done
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
if image_exists "$image"; then echo "$image"; exit; fi
for official in $KIND_NODE_IMAGES; do
  if pull "$official"; then echo "$official"; exit; fi
done

"$CLUSTER_DIR/k8s-binaries.sh"
base=$("$CLUSTER_DIR/base-images.sh" kind-node | sed -n 's/^KIND_NODE_BASE_IMAGE=//p')
names=(kube-apiserver kube-controller-manager kube-scheduler kube-proxy etcd coredns metrics-server kube-network-policies)
images=$("$CLUSTER_DIR/component-images.sh" "${names[@]}")
components=$(paste -d= <(printf '%s\n' "${names[@]}") - <<<"$images")
step "Building the kind node image (about 40 s), once" node-image build_image
echo "$image"
