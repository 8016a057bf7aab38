#!/usr/bin/env bash
# load-image.sh IMAGE...: copies images from the engine into every node of the
# cluster. A node that has the very image already is skipped.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Which digest the engine calls the image's id depends on its image store: that
# of the configuration (classic) or of the manifest (containerd). The node is
# asked for both, by name: it may have the layers without the name, or under the
# name an older build.
node_has() { # NODE IMAGE ID
  local known
  # No pipe into grep -q: it ends early, and pipefail takes that for a failure.
  known=$(docker exec "$1" sh -c '
    manifest=$(ctr -n k8s.io images list | grep -E "^(docker.io/(library/)?)?$1 " | tr -s " " | cut -d" " -f3)
    echo "$manifest"
    # It names its configuration.
    ctr -n k8s.io content get "$manifest" | grep -o "sha256:[0-9a-f]*"
    ' sh "$2" 2>/dev/null) || true
  [[ $'\n'$known$'\n' == *$'\n'$3$'\n'* ]]
}

# One archive of all images: layers that they share travel once.
load_into() { # "NODE..." IMAGE...
  local node pids=() pid archive nodes=$1
  shift
  # Saved once: packing costs the engine as much as importing costs a node.
  archive=$(mktemp)
  # shellcheck disable=SC2064
  trap "rm -f '$archive'" EXIT
  docker save -o "$archive" "$@"
  for node in $nodes; do
    # --local spares a copy through containerd's transfer service (a third of the time). containerd 1 has nothing else.
    docker exec -i "$node" sh -c '
      if ctr images import --help | grep -q -e --local; then set -- --local; fi
      exec ctr -n k8s.io images import "$@" --all-platforms --digests -' <"$archive" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
}

(($#)) || die "usage: load-image.sh IMAGE..."
use_engine
nodes=$(docker ps --filter "label=io.x-k8s.kind.cluster=$CLUSTER_NAME" --format '{{.Names}}' | sort)
[[ -n $nodes ]] || die "there is no running cluster; run e2e/cluster/cluster.sh up"
lock load-image
# Images by the nodes that lack them: nearly always one set.
declare -A lacking=()
for image in "$@"; do
  id=$(docker image inspect -f '{{.Id}}' "$image" 2>/dev/null) || die "the engine has no image $image"
  missing=()
  for node in $nodes; do node_has "$node" "$image" "$id" || missing+=("$node"); done
  if ((${#missing[@]} == 0)); then cached "Loading $image into the nodes"; continue; fi
  lacking[${missing[*]}]+=" $image"
done
for set in "${!lacking[@]}"; do
  # shellcheck disable=SC2086
  step "Loading $(wc -w <<<"${lacking[$set]}") images into $(wc -w <<<"$set") nodes" load-image load_into "$set" ${lacking[$set]}
done
