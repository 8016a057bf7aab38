# shellcheck shell=bash disable=SC2034
# Shared by the scripts beside it: paths, progress, locks, the container engine.
# Source it; it is not a command.
#
# Standard output of every script is data only (something to eval or to capture);
# everything meant for a person goes to standard error.

# Before 4.4 an empty array is an unset variable, which set -u refuses.
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
  echo "error: these scripts need bash 4.4 or newer, and ${BASH:-bash} is $BASH_VERSION. On macOS: brew install bash, then" \
    "put it first: export PATH=\"\$(brew --prefix)/bin:\$PATH\"" >&2
  exit 1
fi
set -euo pipefail

CLUSTER_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CLONE_DIR=$(cd "$CLUSTER_DIR/../.." && pwd)

set -a # child processes (make, node) may want the versions, too
# shellcheck source=versions.env
source "$CLUSTER_DIR/versions.env"
set +a

# Slow to make and independent of the clone: shared by all clones of one user.
CACHE_DIR=${CORELANE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/corelane}
BIN_DIR=$CACHE_DIR/bin
LOG_DIR=$CACHE_DIR/log
# Belongs to this clone: kubeconfigs, records of the test API servers.
STATE_DIR=$CLONE_DIR/.state

# One cluster per machine, but for those who want one to themselves.
CLUSTER_NAME=${CORELANE_CLUSTER:-corelane}
CLUSTER_KUBECONFIG=$STATE_DIR/kubeconfig
STANDIN=corelane.local # registry name of everything made here; never pushed

# macOS lacks these two.
command -v timeout >/dev/null || timeout() { shift; "$@"; }
command -v sha256sum >/dev/null || sha256sum() { shasum -a 256; }

mkdir -p "$BIN_DIR" "$LOG_DIR" "$CACHE_DIR/lock"

# .state ignores itself, so no clone depends on a line in the root .gitignore.
state_dir() {
  mkdir -p "$STATE_DIR"
  [[ -e $STATE_DIR/.gitignore ]] || echo '*' >"$STATE_DIR/.gitignore"
}

# shellcheck source=progress.sh
source "$CLUSTER_DIR/progress.sh"

# wait_until SECONDS COMMAND...: polls five times a second; false after SECONDS.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || return 1
    sleep 0.2
  done
}

have() { command -v "$1" >/dev/null 2>&1; }

# ---- One run at a time -------------------------------------------------------

# lock NAME: held until the script ends. Different scripts use different names
# and always lock in the order they call each other, so they cannot deadlock.
# Daemons must be started with `detached`, or they would hold the lock for ever.
declare -A held_locks=()
lock() {
  local fd
  # macOS has no flock; there only the user's own care keeps two runs apart.
  have flock || return 0
  # A second open of the file would be another holder: we would wait for ourselves.
  [[ -z ${held_locks[$1]:-} ]] || return 0
  exec {fd}>"$CACHE_DIR/lock/$1"
  held_locks[$1]=$fd
  if ! flock -n "$fd"; then
    # Where several things are made at a time, they wait for each other.
    whole_lines || say "waiting for another run ($1) ..."
    flock "$fd"
  fi
}

# detached LOG COMMAND...: a process that outlives this shell and its terminal
# and keeps none of its open files (locks, pipes of the caller). Its id is in
# $detached_pid.
detached() {
  local log=$1 fd
  shift
  (
    for fd in /proc/self/fd/*; do
      fd=${fd##*/}
      ((fd > 2)) && eval "exec $fd>&-" 2>/dev/null
    done
    exec setsid nohup "$@" </dev/null >"$log" 2>&1
  ) &
  detached_pid=$!
  disown
}

kill_tree() { # PID: and what it has started
  local child
  for child in $(pgrep -P "$1"); do kill_tree "$child"; done
  kill "$1" 2>/dev/null || true
}

# at_the_same_time FUNCTION...: ends when all have; with the first that fails, and without the others.
at_the_same_time() {
  (
    lanes=()
    trap 'for lane in "${lanes[@]}"; do kill_tree "$lane"; done' EXIT
    trap 'exit 130' INT TERM
    for lane in "$@"; do
      "$lane" &
      lanes+=($!)
    done
    while ((${#lanes[@]})); do
      wait -n || exit 1
      mapfile -t lanes < <(jobs -pr)
    done
  )
}

# ---- CPU time ----------------------------------------------------------------

# The project's engine, its containers and its tests have a group of the kernel (cgroup) to themselves, with ten times
# the weight of any other process: what else computes on the machine does not decide how a test ends. With a hundred
# times, threads of the kernel got no CPU, and a container's network took 131 s to go. Only root can make a group, and
# not where systemd owns them.
CPU_GROUP=corelane

# cpu_group NAME: makes the group corelane/NAME, and prints its folder; false where that cannot be.
cpu_group() {
  local root=/sys/fs/cgroup/cpu weight=cpu.shares value=10240
  [[ $(id -u) == 0 && ! -d /run/systemd/system ]] || return 1
  if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
    root=/sys/fs/cgroup weight=cpu.weight value=1000
  fi
  {
    mkdir -p "$root/$CPU_GROUP/$1"
    if [[ $weight == cpu.weight ]]; then
      echo +cpu >"$root/cgroup.subtree_control"
      echo +cpu >"$root/$CPU_GROUP/cgroup.subtree_control"
    fi
    echo "$value" >"$root/$CPU_GROUP/$weight"
  } 2>/dev/null || return 1
  echo "$root/$CPU_GROUP/$1"
}

# enter_cpu_group NAME: this shell, and what it starts from now on.
enter_cpu_group() {
  local folder
  folder=$(cpu_group "$1") || return 0
  echo "$BASHPID" 2>/dev/null >"$folder/cgroup.procs" || true
}

# After the engine has ended. A group that somebody is still in stays.
remove_cpu_groups() {
  find /sys/fs/cgroup -maxdepth 4 -depth -type d \( -path "*/$CPU_GROUP" -o -path "*/$CPU_GROUP/*" \) -exec rmdir {} + 2>/dev/null || true
}

# ---- Debian packages ---------------------------------------------------------

# apt_install PACKAGE...: installs what is missing. Services that a package
# brings must not start: this project runs its own engine and must not hand the
# machine a system-wide one as a side effect.
apt_install() {
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  have apt-get || die "needs the Debian packages: ${missing[*]}"
  [[ $(id -u) == 0 ]] || die "needs the Debian packages: ${missing[*]}. Install them, or run as root."
  # In a subshell, which gives the lock back: who installs something may go on to call a script that does.
  (lock apt; step "Installing Debian packages: ${missing[*]}" apt apt_install_now "${missing[@]}")
}

apt_install_now() {
  local policy=/usr/sbin/policy-rc.d
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  # Another apt on the machine may hold the lock for a while.
  local apt=(apt-get -o DPkg::Lock::Timeout=300 -q)
  export DEBIAN_FRONTEND=noninteractive
  "${apt[@]}" update
  "${apt[@]}" install -y --no-install-recommends "$@"
}

# ---- Container engine --------------------------------------------------------

ENGINE_RUN_DIR=${CORELANE_RUN_DIR:-/run/corelane}
ENGINE_SOCKET=$ENGINE_RUN_DIR/docker.sock
ENGINE_PIDFILE=$ENGINE_RUN_DIR/docker.pid
ENGINE_DATA_DIR=$CACHE_DIR/engine

docker_answers() { timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }
own_engine_answers() { [[ -S $ENGINE_SOCKET ]] && DOCKER_HOST=unix://$ENGINE_SOCKET docker_answers; }

engine_reachable() { have docker && { docker_answers || own_engine_answers; }; }

# Points this process at the engine: the user's own if it answers, else ours.
# Starts nothing; engine.sh does.
use_engine() {
  [[ -z ${CORELANE_ENGINE_READY:-} ]] || return 0
  have docker || die "no docker client; run e2e/cluster/engine.sh up"
  if ! docker_answers; then
    own_engine_answers || die "no container engine answers; run e2e/cluster/engine.sh up"
    export DOCKER_HOST=unix://$ENGINE_SOCKET
  fi
  export CORELANE_ENGINE_READY=1
}

image_exists() { docker image inspect "$1" >/dev/null 2>&1; }

# Docker Hub and registry.k8s.io may be out of reach. The first failed pull is
# remembered for an hour (and for the rest of this run), so that a machine
# without a registry pays the time-out once and not per image. One that is there
# answers within a second or two; a slower one: CORELANE_PULL_SECONDS.
NO_REGISTRY_MARK=$CACHE_DIR/no-registry
PULL_SECONDS=${CORELANE_PULL_SECONDS:-5}

registry_given_up() {
  [[ -n ${CORELANE_NO_REGISTRY:-} ]] || [[ -n $(find "$NO_REGISTRY_MARK" -mmin -60 2>/dev/null) ]]
}

# Digests of images, one "IMAGE sha256:..." per line; pin-images.sh writes it. The
# engine itself refuses what a digest does not fit.
IMAGE_SUMS=${IMAGE_SUMS:-$CLUSTER_DIR/images.sums}

# pinned IMAGE: prints IMAGE@DIGEST; false if no digest is known.
pinned() {
  local digest
  digest=$(awk -v image="$1" '$1 == image { print $2 }' "$IMAGE_SUMS")
  [[ -n $digest ]] && echo "$1@$digest"
}

# pull IMAGE: true if it is in the engine afterwards, under its name and as $pulled,
# which has the digest where one is known. The time-out is on the registry's first answer
# ("Pulling from"), not on the download, which may be slow.
# The engine asks, not this shell: it may have mirrors or a proxy of its own.
pull() {
  local log=$LOG_DIR/pull-${1//[^a-z0-9.-]/-}.log pid
  pulled=$(pinned "$1") || pulled=$1
  image_exists "$pulled" && return 0
  registry_given_up && return 1
  docker pull "$pulled" >"$log" 2>&1 &
  pid=$!
  if ! wait_until "$PULL_SECONDS" pull_answered "$pid" "$log" || ! grep -q 'Pulling from' "$log"; then
    kill "$pid" 2>/dev/null || true
    # The registry is there and says no to this one image: try the others.
    if grep -qE 'manifest unknown|not found|denied' "$log"; then return 1; fi
    touch "$NO_REGISTRY_MARK"
    export CORELANE_NO_REGISTRY=1
    return 1
  fi
  say "pulling $pulled"
  [[ $pulled == *@* ]] ||
    say "warning: no digest is known of $1, so nobody checks what it is. e2e/cluster/pin-images.sh writes it"
  wait "$pid" || return 1
  # What is pulled by digest has no other name.
  [[ $pulled == "$1" ]] || docker tag "$pulled" "$1"
}
pull_answered() { grep -q 'Pulling from' "$2" || ! kill -0 "$1"; }

# place FILE PATH: a hard link where that can be; programs of a cluster are 500 MB.
place() { ln -f "$1" "$2" 2>/dev/null || cp "$1" "$2"; }

# The hash that names what is made from the given files and words.
hash_of() {
  local item
  for item in "$@"; do
    if [[ -f $item ]]; then cat "$item"; else printf '%s\n' "$item"; fi
  done | sha256sum | cut -c1-12
}
