# shellcheck shell=bash
# What a person sees while things are being made. lib.sh sources it.
#
# By itself a step is one line, which grows: "TITLE ... done in 27s". Where several things are made at a time
# (CORELANE_LINES=1) steps write whole lines instead. A run with a plan (CORELANE_PLAN, a file that plan_begin makes)
# also has the time at the head of each line, and an estimate of what is left.

# Inside of a step standard error is its log; what a person should see at once goes here.
exec {PROGRESS_FD}>&2

# Logs get pasted into issues: no home directories, no clone paths.
abbreviate() {
  local text=$*
  text=${text//"$CACHE_DIR"/'~/.cache/corelane'}
  text=${text//"$CLONE_DIR/"/}
  text=${text//"$HOME"/'~'}
  printf '%s' "$text"
}

# One write per line: lines of several processes must not mix.
say() { printf '%s%s\n' "$(plan_prefix)" "$(abbreviate "$*")" >&2; }
die() { say "error: $*"; exit 1; }

now() { printf '%(%s)T' -1; }

elapsed() { # SECONDS -> 7m12s
  local s=$1
  if ((s >= 60)); then printf '%dm%02ds' $((s / 60)) $((s % 60)); else printf '%ds' "$s"; fi
}

whole_lines() { [[ -n ${CORELANE_PLAN:-}${CORELANE_LINES:-} ]]; }

# Begin lines are for what takes long enough to wonder about.
WORTH_ANNOUNCING_SECONDS=10

# step TITLE LOG COMMAND...: runs COMMAND (a function or a program) with its
# output in $LOG_DIR/LOG.log and shows only TITLE and the time it took.
# Not for use in a condition (if step ..., step ... || ...): bash would then
# ignore set -e inside COMMAND.
step() {
  local title=$1 id=$2 log=$LOG_DIR/$2.log rc start=$SECONDS
  shift 2
  # Where there is a plan, it says how long things take.
  if [[ -n ${CORELANE_PLAN:-} ]]; then title=$(sed -E 's/(, about [^,]* cores| \(about [^)]*\))?(, once)?$//' <<<"$title"); fi
  if ! whole_lines; then
    printf '%s ... ' "$(abbreviate "$title")" >&2
  elif [[ -z ${CORELANE_PLAN:-} ]]; then
    [[ $title != *'(about '* ]] || say "$title ..."
  elif (($(plan_seconds "$id") >= WORTH_ANNOUNCING_SECONDS)); then
    plan_note begun "$id" "$(now)"
    say "$title ..."
  fi
  set +e
  (set -e; "$@") >"$log" 2>&1 </dev/null
  rc=$?
  set -e
  plan_note ended "$id"
  if ((rc != 0)); then
    step_line "$title" "FAILED after $(elapsed $((SECONDS - start)))"
    say "--- last 30 lines of $log"
    tail -n 30 "$log" | while IFS= read -r line; do say "  $line"; done
    say "--- the whole log: $log"
    tell_advice "$log"
    exit "$rc"
  fi
  step_line "$title" "done in $(elapsed $((SECONDS - start)))"
}
# A script may have a function `advice LOG`, which prints what to do about a failure.
tell_advice() { # LOG
  declare -F advice >/dev/null || return 0
  local text
  text=$(advice "$1") || true
  [[ -z $text ]] || say "error: $text"
}
step_line() { # TITLE RESULT
  if whole_lines; then say "$1 ... $2"; else printf '%s\n' "$2" >&2; fi
}

# One line for a step that has nothing to do. Not worth one where there is a plan: it has not been promised.
cached() { [[ -n ${CORELANE_PLAN:-} ]] || say "$1 ... cached"; }

# ---- A plan: what is to come, and how long it usually takes -------------------
#
# Lines of the file, in any order:
#   started TIME
#   expect LANE ID SECONDS   the lanes "first" and "beside" run at the same time, "then" after both
#   begun ID TIME            of a step
#   share ID PERCENT         how much of a step is done, where that is known
#   ended ID                 of a step or of a lane

plan_begin() { # FILE
  export CORELANE_PLAN=$1
  echo "started $(now)" >"$CORELANE_PLAN"
}

plan_note() { [[ -z ${CORELANE_PLAN:-} ]] || echo "$*" >>"$CORELANE_PLAN"; }

plan_seconds() { # ID -> what it usually takes; 0 if nobody knows
  [[ -n ${CORELANE_PLAN:-} ]] || { echo 0; return; }
  awk -v id="$1" '$1 == "expect" && $3 == id { seconds = $4 } END { print int(seconds) }' "$CORELANE_PLAN"
}

# Seconds that are left: a step that takes longer than usual is always nearly done, but never done. Two lanes that
# compute at the same time on few cores take from each other.
plan_left() {
  awk -v now="$(now)" -v contention="$(contention)" '
    $1 == "expect" { lane[$3] = $2; usual[$3] = $4 }
    $1 == "begun" { begun[$2] = $3 }
    $1 == "share" { share[$2] = $3 }
    $1 == "ended" { ended[$2] = 1 }
    END {
      for (id in usual) {
        if (ended[id] || ended[lane[id]]) continue
        rest = usual[id]
        # The pace of this machine counts as soon as it shows.
        if (id in share && share[id] >= 5) rest = (now - begun[id]) * (100 - share[id]) / share[id]
        else if (id in share) rest *= 1 - share[id] / 100
        else if (id in begun) rest -= now - begun[id]
        left[lane[id]] += rest > usual[id] / 20 ? rest : usual[id] / 20
      }
      longer = left["first"] > left["beside"] ? left["first"] : left["beside"]
      shorter = left["first"] + left["beside"] - longer
      print int(longer + contention * shorter + left["then"] + 0.5)
    }' "$CORELANE_PLAN"
}
# Half of the shorter one is waiting for the network and the disk.
contention() { if (($(cores) > 2)); then echo 0; else echo 0.5; fi; }
cores() { nproc 2>/dev/null || sysctl -n hw.ncpu; }

about() { # SECONDS -> "7 min", "90 s"
  if (($1 >= 150)); then echo "$((($1 + 30) / 60)) min"; else echo "$((($1 + 9) / 10 * 10)) s"; fi
}

plan_prefix() {
  [[ -n ${CORELANE_PLAN:-} ]] || return 0
  local since left=
  since=$(($(now) - $(awk '$1 == "started" { print $2 }' "$CORELANE_PLAN")))
  # What is to come is known a moment later: it takes an engine to look.
  if grep -q '^expect' "$CORELANE_PLAN"; then left=$(printf ', about %6s left' "$(about "$(plan_left)")"); fi
  printf '%2d:%02d%s: ' $((since / 60)) $((since % 60)) "$left"
}
