#!/usr/bin/env bash
# verify.sh: everything that must hold of the source without running it. Each check prints one line; the counts go to
# .state/results/verify.json for the summary.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/cluster/lib.sh"
cd "$CLONE_DIR"
state_dir
results=$STATE_DIR/results
mkdir -p "$results"
rm -f "$results"/verify.{json,*.failure}
passed=0 failed=0
bin=node_modules/.bin

# check NAME WAY_OUT COMMAND...: quiet when it holds; else what to do, and the command's output, which the summary of
# .ci/run shows once more.
check() {
  local name=$1 way_out=$2 output
  shift 2
  if output=$("$@" 2>&1 </dev/null); then
    passed=$((passed + 1))
    printf 'ok      %s\n' "$name"
  else
    failed=$((failed + 1))
    printf '%s\n%s\n%s\n' "$name" "$way_out" "$output" >"$results/verify.$failed.failure"
    printf 'FAILED  %s' "$(cat "$results/verify.$failed.failure")"
    echo
  fi
}

# Sources must build elsewhere: no path of one machine, no package registry's host, no test that is switched off.
no_machine_paths() { ! git grep -nIE "$1" -- . ':!.ci/verify.sh'; }
no_skipped_tests() { ! git grep -nE '\b(it|test|describe)\.(skip|todo|only)\b|\bx(it|describe)\(|retryTimes' -- '*.ts' '*.mjs'; }

shell_syntax() { local script; for script in $(git ls-files '*.sh' .ci/run); do bash -n "$script" || return 1; done; }

tools=$(e2e/cluster/tools.sh helm)
generate='Run `make generate`, and commit the files that it changes.'
format='Run `make format`. Correct what it does not fix, or the rule that complains.'
check 'generated files are as the source makes them' "$generate" "$bin/node" operator/gen/generate.ts --check
check 'install.yaml is as the chart renders it' "$generate" env PATH="$tools:$PATH" "$bin/node" operator/gen/install.ts --check
check 'types (tsc)' 'Correct the types in these lines.' "$bin/tsc"
check 'types of what runs in a browser (tsc)' 'Correct the types in these lines.' "$bin/tsc" --noEmit -p operator/page
check 'lint and format (biome)' "$format" "$bin/biome" check .
check 'chart lints (helm lint)' 'Correct charts/corelane.' "$tools/helm" lint charts/corelane --strict --quiet
check 'no path of one machine, no registry host' 'Remove the path or the host from these lines: the sources must build elsewhere.' \
  no_machine_paths '(registry\.npmjs|(proxy|sum)\.golang\.org|(deb|security)\.debian\.org|"resolved":)'
check 'no skipped or repeated test' 'Remove skip, todo, only or retryTimes from these lines.' no_skipped_tests
check 'no test of the gate depends on a clock, a rate or a percentile' 'These lines do:' "$bin/node" .ci/gate-rule.mjs
check 'shell scripts parse' 'Correct the syntax.' shell_syntax
check 'every download has a pin, of the version that is used' 'Pin what is missing:' "$bin/node" .ci/pins.mjs
for origin in npm go debian images; do
  check "what comes from elsewhere is refused with a changed byte ($origin)" \
    'A download was taken although it is not what is pinned, or was refused although it is:' .ci/changed-bytes.sh "$origin"
done

printf '{"name":"verify","passed":%d,"failed":%d}\n' "$passed" "$failed" >"$results/verify.json"
echo "verify: $passed passed, $failed failed"
((failed == 0))
