#!/usr/bin/env bash
# pin-images.sh [IMAGE...]: writes into images.sums which image each name stands
# for now (default: all names of base-images.sh, node-image.sh and
# component-images.sh). Wants a registry; review and commit the result.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

use_engine
k8s=registry.k8s.io
# shellcheck disable=SC2086
(($#)) || set -- "$DEBIAN_BASE" "$NODE_BASE" "debian:$KIND_NODE_DEBIAN_SUITE-slim" $KIND_NODE_IMAGES \
  $k8s/{kube-apiserver,kube-controller-manager,kube-scheduler,kube-proxy}:"$KUBERNETES_VERSION" \
  "$k8s/etcd:${ETCD_VERSION#v}-0" "$k8s/coredns/coredns:$COREDNS_VERSION" \
  "$k8s/metrics-server/metrics-server:$METRICS_SERVER_VERSION"

missing=()
for image in "$@"; do
  [[ $image != *@* ]] || continue # has one
  if ! timeout 600 docker pull --quiet "$image" >/dev/null; then missing+=("$image"); continue; fi
  # All platforms' images hang on this one digest. An image may have digests under other names, too.
  digest=$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$image" |
    awk -F@ -v name="${image%:*}" '$1 == name { print $2; exit }')
  [[ $digest == sha256:* ]] || die "the engine does not say the digest of $image"
  { awk -v image="$image" '$1 != image' "$IMAGE_SUMS"; echo "$image $digest"; } | LC_ALL=C sort -o "$IMAGE_SUMS"
  say "$image $digest"
done
((${#missing[@]} == 0)) || die "the registry does not have: ${missing[*]}"
