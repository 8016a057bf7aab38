#!/usr/bin/env bash
# cluster.sh up [--quick]  a kind cluster `corelane` of three nodes is up and healthy;
#                    prints the path of its kubeconfig (.state/kubeconfig).
#                    --quick (the demo): without metrics-server and NetworkPolicy, with Debian's containerd, if there
#                    is no cluster yet; docs/adr/0029-two-node-images.md
# cluster.sh down    deletes it (images and other caches stay)
# cluster.sh status  shows it; exit code 0 if it is healthy
#
# The cluster is one per machine: clones share it. Your own ~/.kube/config and
# other clusters are never touched.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

export KUBECONFIG=$CLUSTER_KUBECONFIG KIND_EXPERIMENTAL_PROVIDER=docker
pod_network=10.244.0.0/16 # kind's defaults
service_network=10.96.0.0/16

node_containers() { # all | running
  local all=(-a)
  [[ $1 == all ]] || all=()
  docker ps "${all[@]}" --filter "label=io.x-k8s.kind.cluster=$CLUSTER_NAME" --format '{{.Names}}' | sort
}
nodes_up() {
  local node nodes
  nodes=$(node_containers running)
  (($(wc -l <<<"$nodes") == 3)) || return 1
  for node in $nodes; do docker exec "$node" test -e $finished || return 1; done
}
# In a node's memory: it is missing if the cluster was never finished, and after a
# restart, which Docker also does by itself when the engine comes back. Then routes
# are gone and addresses swapped, while the API still calls all nodes Ready.
finished=/run/corelane-finished

cgroup_v1() { [[ $(docker info --format '{{.CgroupVersion}}') == 1 ]]; }

# The conditions that a test may count on.
healthy() {
  local ready
  ready=$(kubectl --request-timeout=4s get nodes \
    -o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}') || return 1
  [[ $ready == $'True\nTrue\nTrue' ]] || return 1
  [[ $(available deployment coredns) == True ]] || return 1
  [[ -z $quick ]] || return 0
  [[ $(available deployment metrics-server) == True ]] || return 1
  # Only stand-in nodes have it: "desired ready".
  ready=$(kubectl --request-timeout=4s -n kube-system get daemonset kube-network-policies --ignore-not-found \
    -o jsonpath='{.status.desiredNumberScheduled} {.status.numberReady}') || return 1
  [[ -z $ready || $ready == '3 3' ]] || return 1
  [[ $(available apiservice v1beta1.metrics.k8s.io) == True ]]
}
available() { # KIND NAME -> the status of its condition Available
  kubectl --request-timeout=4s -n kube-system get "$@" -o jsonpath='{.status.conditions[?(@.type=="Available")].status}'
}

export_kubeconfig() {
  local text
  state_dir
  # Another clone may have made the cluster, or an earlier one of the same name.
  text=$(kind get kubeconfig -q --name "$CLUSTER_NAME") || return 1
  (umask 077; printf '%s\n' "$text" >"$CLUSTER_KUBECONFIG.new")
  mv "$CLUSTER_KUBECONFIG.new" "$CLUSTER_KUBECONFIG"
}

is_stand_in() { [[ $1 == "$STANDIN"/* ]]; }

kind_config() {
  cat <<CONFIG
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking:
  disableDefaultCNI: $(if is_stand_in "$image"; then echo true; else echo false; fi)
  podSubnet: $pod_network
  serviceSubnet: $service_network
nodes:
  - role: control-plane
  - role: worker
  - role: worker
CONFIG
  # The kubelet refuses cgroup v1 since Kubernetes 1.35 unless told otherwise.
  if cgroup_v1; then
    cat <<'CONFIG'
kubeadmConfigPatches:
  - |
    kind: KubeletConfiguration
    failCgroupV1: false
CONFIG
  fi
  # Lowering a process's OOM score needs CAP_SYS_RESOURCE, which such an engine
  # cannot give; without this no pod's sandbox would start.
  if [[ $(docker info --format '{{.DefaultRuntime}}') == corelane ]]; then
    cat <<'CONFIG'
containerdConfigPatches:
  - |
    [plugins."io.containerd.grpc.v1.cri"]
      restrict_oom_score_adj = true
CONFIG
  fi
}

# kind's own network plug-in (kindnet) is an image we cannot pull. What it enforces
# NetworkPolicy with is in kube-network-policies.yaml; the rest of its job here
# is small: an address per pod from the node's range (ptp, host-local), a route
# to every other node's range, and NAT towards everything that is no pod. A
# Service address that kube-proxy did not rewrite (yet) is refused: it would leave
# this machine for whatever has that address outside, and a pod was seen getting
# a stranger's certificate in place of the API server's.
configure_network() {
  local node other range rows
  wait_until 60 every_node_has_a_range
  rows=$(node_ranges)
  while read -r node _ range; do
    docker exec -i "$node" sh -c 'cat >/etc/cni/net.d/10-corelane.conflist' <<CONFLIST
{
  "cniVersion": "1.0.0",
  "name": "corelane",
  "plugins": [
    {"type": "ptp", "mtu": 1500, "ipam": {
      "type": "host-local", "dataDir": "/run/cni-ipam-state",
      "ranges": [[{"subnet": "$range"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
CONFLIST
    {
      echo "sysctl -qw net.ipv4.ip_forward=1"
      echo "iptables -t nat -A POSTROUTING -s $pod_network ! -d $pod_network -j MASQUERADE"
      echo "iptables -A FORWARD -d $service_network -j REJECT"
      echo "iptables -A OUTPUT -d $service_network -j REJECT"
      while read -r other address range; do
        [[ $other == "$node" ]] || echo "ip route add $range via $address"
      done <<<"$rows"
    } | docker exec -i "$node" sh -e
  done <<<"$rows"
}
node_ranges() {
  local row='{.metadata.name} {.status.addresses[?(@.type=="InternalIP")].address} {.spec.podCIDR}{"\n"}'
  kubectl get nodes -o jsonpath="{range .items[*]}$row{end}"
}
# The range is given by the controller manager some seconds after a node joins.
every_node_has_a_range() { (($(node_ranges | awk 'NF == 3' | wc -l) == 3)); }

create() {
  kind_config >"$LOG_DIR/kind-config.yaml"
  kind create cluster --name "$CLUSTER_NAME" --image "$image" --kubeconfig "$KUBECONFIG" --config "$LOG_DIR/kind-config.yaml"
}

finish() {
  if is_stand_in "$image"; then configure_network; fi
  [[ -n $quick ]] || add_addons
  if ! wait_until 180 healthy; then
    kubectl get nodes,pods -A -o wide
    kubectl -n kube-system describe pods | tail -40
    return 1
  fi
  local node
  for node in $(node_containers running); do docker exec "$node" touch $finished; done
}

# What tests count on, and a demo does not.
add_addons() {
  # kubeadm gives kube-proxy no share of the CPU, managed clusters do (100m). Without one it was up to 15 s late with a
  # pod that had gone as soon as renders took all of a node (median 2 s).
  kubectl -n kube-system set resources daemonset kube-proxy --requests=cpu=100m
  # metrics-server ends, and waits 10 s, if Services do not work yet.
  kubectl -n kube-system rollout status daemonset kube-proxy --timeout=60s
  if is_stand_in "$image"; then
    sed "s/KUBE_NETWORK_POLICIES_VERSION/$KUBE_NETWORK_POLICIES_VERSION/" "$CLUSTER_DIR/kube-network-policies.yaml" |
      kubectl apply --server-side -f -
  fi
  sed "s/METRICS_SERVER_VERSION/$METRICS_SERVER_VERSION/" "$CLUSTER_DIR/metrics-server.yaml" | kubectl apply --server-side -f -
}

delete() {
  kind delete cluster --name "$CLUSTER_NAME" --kubeconfig "$KUBECONFIG"
  rm -f "$KUBECONFIG"
}

# By id: the same image may have several names.
image_of_control_plane() { docker inspect -f '{{.Image}}' "$CLUSTER_NAME-control-plane" 2>/dev/null || true; }

up() {
  local existing
  use_engine
  lock cluster
  PATH=$("$CLUSTER_DIR/tools.sh" kind kubectl):$PATH
  image=$("$CLUSTER_DIR/node-image.sh" ${quick:+--quick})
  existing=$(node_containers all)
  if [[ -n $existing ]]; then
    if [[ $(image_of_control_plane) != "$(docker image inspect -f '{{.Id}}' "$image")" ]]; then
      say "the cluster runs another node image than $image"
    elif nodes_up && export_kubeconfig; then
      # A quick one of the same image (pulled) gets what it lacks.
      [[ -n $quick || -n $(kubectl -n kube-system get deployment metrics-server --ignore-not-found -o name) ]] || add_addons
      if healthy; then return; fi
      # It may just be starting, or under somebody's load: do not take it away yet.
      say "the cluster is not healthy; giving it 60 s"
      if wait_until 60 healthy; then return; fi
    fi
    # Nodes that stopped with the engine or the machine could be started again,
    # but that took longer (72 s) than a new cluster (52 s), with routes and pod
    # states of before to be told from fresh ones.
    step "Deleting the old cluster" cluster-delete delete
  fi
  state_dir
  # A cluster that came up half is of no use to anybody; the log tells why.
  trap 'kind delete cluster --name "$CLUSTER_NAME" --kubeconfig "$KUBECONFIG" >/dev/null 2>&1' EXIT
  step "Creating a kind cluster of 3 nodes (about 30 s)" cluster-create create
  step "Waiting for nodes, CoreDNS$([[ -n $quick ]] || echo " and metrics-server") (about 20 s)" cluster-finish finish
  trap - EXIT
}

down() {
  if ! engine_reachable; then rm -f "$KUBECONFIG"; return; fi
  use_engine
  lock cluster
  rm -f "$KUBECONFIG"
  [[ -n $(node_containers all) ]] || return 0
  PATH=$("$CLUSTER_DIR/tools.sh" kind):$PATH
  step "Deleting the kind cluster" cluster-delete delete
}

status() {
  use_engine
  PATH=$("$CLUSTER_DIR/tools.sh" kind kubectl):$PATH
  docker ps -a --filter "label=io.x-k8s.kind.cluster=$CLUSTER_NAME" --format 'table {{.Names}}\t{{.Image}}\t{{.Status}}'
  nodes_up && export_kubeconfig && kubectl get nodes,pods -A -o wide
  # A quick one is healthy, too.
  [[ -n $(kubectl -n kube-system get deployment metrics-server --ignore-not-found -o name 2>/dev/null) ]] || quick=1
  if nodes_up && healthy; then echo "healthy"; else echo "not healthy"; return 1; fi
}

quick=
[[ ${2:-} != --quick ]] || quick=1
case ${1:-} in
  up) up; echo "$CLUSTER_KUBECONFIG" ;;
  down) down ;;
  status) status ;;
  *) die "usage: cluster.sh up [--quick]|down|status" ;;
esac
