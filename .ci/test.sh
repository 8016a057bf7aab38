#!/usr/bin/env bash
# test.sh PROJECT... [-- JEST OPTION...]: sets up what the Jest projects need (engine, tools, images, cluster), runs
# them, and writes their counts to .state/results/ for the summary. Last line: `[e2e: ]N passed, N failed`.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/cluster/lib.sh"
cd "$CLONE_DIR"
state_dir
projects=()
while (($#)) && [[ $1 != -- ]]; do projects+=("$1"); shift; done
(($# == 0)) || shift
jest_options=("$@")
set -- "${projects[@]}"
results=$STATE_DIR/results
mkdir -p "$results"

# prepare: what the projects need, but for those that only compute. Where nothing is cached, programs are compiled while
# images are made.
prepare() {
  local load='' tools=(kubectl helm kubeconform) compiled
  e2e/cluster/engine.sh up
  use_engine
  if [[ " $* " == *' e2e '* ]]; then
    load=--load
    tools+=(kind)
  fi
  compile "${tools[@]}" &
  compiled=$!
  e2e/images.sh $load >"$results/images"
  wait "$compiled"
}
compile() {
  [[ " ${projects[*]} " != *' api '* ]] || e2e/cluster/component-images.sh etcd kube-apiserver kube-controller-manager >/dev/null
  e2e/cluster/tools.sh "$@" >"$results/tools"
}

run_project() {
  local project=$1 workers=
  say "Running the $project tests"
  # One file after the other where files share a cluster. Those of the api project only share a server, with a namespace
  # each, those of the sidecar project an engine; they wait most of their time: for leases, windows, back-offs,
  # containers.
  [[ $project == unit ]] || workers=--runInBand
  [[ $project != api ]] || workers=--maxWorkers=3
  [[ $project != sidecar ]] || workers=--maxWorkers=2
  # A run that dies before its first test writes none, and must not be told by the one before it.
  rm -f "$results/$project.json"
  # Run even after a failure: one run should show all that is broken.
  node_modules/.bin/node --experimental-vm-modules --disable-warning=ExperimentalWarning node_modules/jest/bin/jest.js \
    --selectProjects "$project" $workers "${jest_options[@]}" --ci --json --outputFile="$results/$project.json" || failed=1
}

failed=0
if [[ $* == unit ]]; then
  run_project unit
else
  CORELANE_LINES=1 prepare "$@" &
  prepared=$!
  trap 'kill_tree "$prepared"' EXIT
  # It wants nothing of what is being prepared.
  [[ " $* " != *' unit '* ]] || run_project unit
  wait "$prepared"
  trap - EXIT
  use_engine
  PATH=$(cat "$results/tools"):$PATH
  # shellcheck disable=SC2046
  export PATH $(cat "$results/images")
  export CORELANE_SIDECAR_IMAGE=$SIDECAR_IMAGE CORELANE_NODE_IMAGE=$NODE_IMAGE
  for project in "$@"; do
    [[ $project == unit ]] || run_project "$project"
  done
fi
prefix=
[[ $* != e2e ]] || prefix='e2e: '
node_modules/.bin/node .ci/summary.mjs "$prefix" "$@" || failed=1
exit "$failed"
