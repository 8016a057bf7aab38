#!/usr/bin/env bash
# load.sh: what `make test-load` runs: tests whose verdict depends on rates, times or free cores, one file at a time,
# with nothing else on the machine. LOAD='sidecar operator' tries these parts. The figures go to docs/benchmarks/load.*.
# Last line: `load: N passed, N failed`.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/cluster/lib.sh"
cd "$CLONE_DIR"
state_dir
failed=0 parts=()
for part in ${LOAD:-sidecar operator e2e}; do
  parts+=("load-$part")
  rm -f ".state/results/load-$part.json"
  # Only the stories need the cluster, which is never idle.
  if [[ $part == e2e ]] && ! make -s cluster; then failed=1; continue; fi
  .ci/test.sh "load-$part" || failed=1
  # At once: a part that dies takes nothing of the others along.
  node_modules/.bin/node .ci/load-figures.mjs "load-$part" || failed=1
done
node_modules/.bin/node .ci/summary.mjs 'load: ' "${parts[@]}" || failed=1
exit "$failed"
