#!/usr/bin/env bash
# test.sh PROJECT... [-- JEST OPTION...]: sets up what the Jest projects need (engine, tools, images, cluster), runs
# them, and writes their counts to .state/results/ for the summary. Last line: `[e2e: |keda: |argocd: |tracing: ]N
# passed, N failed`.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/cluster/lib.sh"
cd "$CLONE_DIR"
state_dir
projects=()
while (($#)) && [[ $1 != -- ]]; do projects+=("$1"); shift; done
(($# == 0)) || shift
jest_options=("$@")
set -- "${projects[@]}"
results=$STATE_DIR/results
mkdir -p "$results" "$CACHE_DIR/test-times"
enter_cpu_group tests
# The command line and the operator are started some hundred times: compiled once, they start in two thirds of the time.
export NODE_COMPILE_CACHE=$STATE_DIR/compile-cache

# prepare: what the projects need, but for those that only compute. Where nothing is cached, programs are compiled while
# images are made.
prepare() {
  local load='' tools=(kubectl helm kubeconform) compiled
  e2e/cluster/engine.sh up
  use_engine
  if [[ " $* " =~ \ (load-)?e2e\  ]]; then
    load=--load
    tools+=(kind)
  fi
  compile "${tools[@]}" &
  compiled=$!
  e2e/images.sh $load >"$results/images"
  wait "$compiled"
}
compile() {
  [[ ! " ${projects[*]} " =~ \ (api|dashboards|keda|argocd|load-operator)\  ]] || e2e/cluster/component-images.sh etcd kube-apiserver kube-controller-manager >/dev/null
  [[ " ${projects[*]} " != *' keda '* ]] || e2e/cluster/keda.sh >/dev/null
  [[ " ${projects[*]} " != *' argocd '* ]] || e2e/cluster/argocd.sh >/dev/null
  [[ " ${projects[*]} " != *' tracing '* ]] || e2e/cluster/collector.sh >/dev/null
  e2e/cluster/tools.sh "$@" >"$results/tools"
}

# run_project NAME: a Jest project; `load-PART`, the load tests in the folder PART; or `api-beside` and `api-after`, the
# files of the api project that mostly wait, and the others (longest-first.mjs).
run_project() {
  local name=$1 project=$1 options=(--runInBand) code=0
  say "Running the $name tests"
  # One file after the other where files share a cluster, or measure. Those of the api project only share a server, with
  # a namespace each, those of the sidecar project an engine; they wait most of their time: for leases, windows,
  # back-offs, containers. Those of the unit project compute: of two cores Jest would leave one to itself.
  case $name in
    unit) options=(--maxWorkers=100%) ;;
    sidecar) options=(--maxWorkers=2) ;;
    api) options=(--maxWorkers=3) ;;
    api-beside) project=api options=(--maxWorkers=1 --shard=1/2) ;;
    api-after) project=api options=(--maxWorkers=2 --shard=2/2) ;;
    load-*) project=load ;;
  esac
  # A run that dies before its first test writes none, and must not be told by the one before it.
  rm -f "$results/$name".{json,pressure.json,figures}
  # Run even after a failure: one run should show all that is broken.
  CORELANE_LOAD_PART=${name#load-} CORELANE_PRESSURE=$results/$name.pressure.json CORELANE_FIGURES=$results/$name.figures \
    CORELANE_TEST_TIMES=$CACHE_DIR/test-times/$name.json CORELANE_TEST_RUN=$name \
    node_modules/.bin/node --experimental-vm-modules --disable-warning=ExperimentalWarning node_modules/jest/bin/jest.js \
    --selectProjects "$project" "${options[@]}" --testSequencer "$CLONE_DIR/.ci/longest-first.mjs" \
    --reporters default --reporters "$CLONE_DIR/.ci/pressure.mjs" \
    "${jest_options[@]}" --ci --json --outputFile="$results/$name.json" || code=$?
  # The next run begins with the longest files. A run of some files says nothing of the others.
  ((${#jest_options[@]})) || cp "$results/$name.pressure.json" "$CACHE_DIR/test-times/$name.json" || true
  return "$code"
}

failed=0
names=("$@")
# All is built before the first test: a compiler takes the time that a test may be waiting in.
if [[ $* != unit ]]; then
  CORELANE_LINES=1 prepare "$@" &
  prepared=$!
  trap 'kill_tree "$prepared"' EXIT
  wait "$prepared"
  trap - EXIT
fi
[[ " $* " != *' unit '* ]] || run_project unit || failed=1
if [[ $* != unit ]]; then
  use_engine
  PATH=$(cat "$results/tools"):$PATH
  # shellcheck disable=SC2046
  export PATH $(cat "$results/images")
  export CORELANE_SIDECAR_IMAGE=$SIDECAR_IMAGE CORELANE_NODE_IMAGE=$NODE_IMAGE
  beside=
  # The api and the sidecar project share only the engine, so they run at the same time: two sidecar files and one api
  # file that mostly waits keep two cores busy. A second api file does not make the run shorter [measured], and pods
  # then answer each other too late for limits of half a second. Api files that compute run when the sidecar tests have
  # ended.
  if [[ " $* " == *' api '* && " $* " == *' sidecar '* ]] && ((${#jest_options[@]} == 0)); then
    names=()
    for project in "$@"; do [[ $project == api ]] || names+=("$project"); done
    set -- "${names[@]}" api-after
    names+=(api-beside api-after)
    # Its output is printed at the end.
    run_project api-beside >"$results/api-beside.log" 2>&1 &
    beside=$!
    trap 'kill_tree "$beside"' EXIT
  fi
  for project in "$@"; do
    [[ $project == unit ]] || run_project "$project" || failed=1
  done
  if [[ -n $beside ]]; then
    wait "$beside" || failed=1
    trap - EXIT
    cat "$results/api-beside.log"
  fi
fi
prefix=
[[ ! $* =~ ^(e2e|keda|argocd|tracing|load-[a-z0-9]+)$ ]] || prefix="$*: "
node_modules/.bin/node .ci/summary.mjs "$prefix" "${names[@]}" || failed=1
exit "$failed"
