#!/usr/bin/env bash
# dashboards.sh: the test of the dashboards. Last line: `dashboards: panels=N variables=N empty=0 failed=0`. The answers
# and pictures of them are in .state/dashboards; with UPDATE_PICTURES=1 the pictures go into the docs.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/cluster/lib.sh"
cd "$CLONE_DIR"
state_dir
# One of an earlier run says nothing of this one.
rm -rf "$STATE_DIR/dashboards"
failed=0
.ci/test.sh dashboards || failed=1
[[ ! -e $STATE_DIR/dashboards/line ]] || cat "$STATE_DIR/dashboards/line"
exit "$failed"
