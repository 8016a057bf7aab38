#!/usr/bin/env bash
# demo.sh: a kind cluster of three nodes, the operator, a React page, 1,000 renders and a table of who rendered what.
# Steps that do not need each other run at the same time: Go compiles programs while packages, base images and then our
# own images are made. Each line tells the time, and what is left. Run it through `make demo`.
source "$(dirname "${BASH_SOURCE[0]}")/cluster/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"
cd "$CLONE_DIR"
state_dir

namespace=shop name=storefront
export KUBECONFIG=$CLUSTER_KUBECONFIG

# ---- The plan ----------------------------------------------------------------

# Seconds on 2 cores with nothing else to do (docs/benchmarks/first-hour.md). On more cores what computes is quicker.
expect() { plan_note expect "$@"; }
computes() { echo $(($1 * 2 / $(cores))); }
engine_has() { [[ -n $engine && -n $(docker image ls -q "$STANDIN/$1") ]]; }

plan() {
  local engine='' running=''
  if engine_reachable; then
    engine=1
    use_engine
    running=$(docker ps -q --filter "label=io.x-k8s.kind.cluster=$CLUSTER_NAME")
  fi
  [[ -n $engine ]] || expect beside apt 10
  [[ -e node_modules/.package-lock.json ]] || expect beside npm 25
  # An engine that is not there will tell how much of this is left.
  if ! engine_has kind-node && [[ ! -x $(binary kube-apiserver) ]]; then
    expect first go-modules 12
    expect first go-build "$(seconds_for 3118)"
  fi
  if ! engine_has kind-node; then
    expect first component-images 10
    expect first node-image 28
  fi
  engine_has kind-node-system || engine_has kind-node || { expect beside base-bookworm "$(computes 20)"; expect beside node-system 20; }
  engine_has node || { expect beside base-trixie "$(computes 20)"; expect beside base-node-files 5; expect beside base-node 8; }
  engine_has operator || expect beside image-operator 8
  engine_has sidecar || expect beside image-sidecar 15
  engine_has storefront || expect beside image-storefront 8
  if [[ -z $running ]]; then
    expect "then" cluster-create 22
    expect "then" cluster-finish 12
    expect "then" load-image 14
  fi
  expect "then" demo-install 6
  expect "then" demo-ready 8
  expect "then" demo-render 20
}

# ---- What is made at the same time -------------------------------------------

engine_up=$STATE_DIR/demo-engine-up

# The engine, Node packages, base images, then our images. The images wait for the packages: a part of the sidecar's
# image (spans.cjs) and the operator's bundle are made with them. Where the base images are in the engine already,
# nothing else holds the images back until npm has ended.
beside() {
  if ! have docker; then export CORELANE_LINES=1; fi
  "$CLUSTER_DIR/engine.sh" up
  touch "$engine_up"
  use_engine
  at_the_same_time packages base_images
  e2e/images.sh operator sidecar storefront >"$STATE_DIR/demo-images"
  plan_note ended beside
}
packages() {
  make -q setup 2>/dev/null || step 'Installing Node packages' npm make -s setup
  make -s build
}
base_images() { "$CLUSTER_DIR/base-images.sh" debian node >/dev/null; }

# Programs and the node image.
first() {
  local bare=
  have docker || bare=1
  # A machine that is so bare will have to compile: the modules can come while the engine does.
  if [[ -n $bare ]] && have go; then fetch_modules; fi
  wait_until 300 test -e "$engine_up" || die 'the engine did not come up'
  "$CLUSTER_DIR/node-image.sh" --quick >/dev/null
  "$CLUSTER_DIR/tools.sh" kind kubectl >/dev/null
  plan_note ended first
}
fetch_modules() {
  local name version package packages=()
  for name in kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubeadm kubectl etcd etcdctl kind coredns; do
    program "$name"
    packages+=("$package")
  done
  step 'Fetching Go modules' go-modules go_fetch "${packages[@]}"
}

# ---- The demo itself ---------------------------------------------------------

# The manifest of those without helm, with the images of this clone.
install_operator() {
  sed -e "s|ghcr.io/corelane/operator:[^\"[:space:]]*|$OPERATOR_IMAGE|" \
    -e "s|ghcr.io/corelane/sidecar:[^\"[:space:]]*|$SIDECAR_IMAGE|" charts/install.yaml |
    kubectl apply --server-side --force-conflicts -f -
  kubectl -n corelane rollout status deployment --timeout=120s
}

apply_storefront() {
  kubectl apply -f examples/storefront.yaml
  kubectl -n $namespace wait --for=condition=Ready --timeout=180s renderservice/$name
}

plan_begin "$STATE_DIR/demo-plan"
rm -f "$engine_up"
if have docker; then "$CLUSTER_DIR/engine.sh" up; fi
plan
say "what is missing is being made, several things at a time"
at_the_same_time beside first

use_engine
PATH=$("$CLUSTER_DIR/tools.sh" kind kubectl):$PATH
# shellcheck disable=SC2046
export PATH $(cat "$STATE_DIR/demo-images")
"$CLUSTER_DIR/cluster.sh" up --quick >/dev/null
"$CLUSTER_DIR/load-image.sh" "$OPERATOR_IMAGE" "$SIDECAR_IMAGE" "$STOREFRONT_IMAGE"
step 'Installing the operator: kubectl apply -f charts/install.yaml' demo-install install_operator
step 'kubectl apply -f examples/storefront.yaml, until it is Ready' demo-ready apply_storefront
kubectl -n $namespace get renderservices,pods
step 'Rendering 1,000 pages, 12 at a time' demo-render node_modules/.bin/node e2e/demo.ts
cat "$LOG_DIR/demo-render.log"
