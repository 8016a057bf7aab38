#!/usr/bin/env bash
# engine.sh up    a container engine answers afterwards: the user's own Docker if
#                 there is one, else a dockerd of this project (root on Debian)
# engine.sh down  stops that dockerd; never one that this script did not start
# engine.sh env   prints what to eval to talk to it (nothing for the user's own)
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The process in our pidfile, if it lives and is really ours: after a restart of
# the machine the number may belong to anything.
own_engine_pid() {
  local pid words
  pid=$(cat "$ENGINE_PIDFILE" 2>/dev/null) || return 1
  [[ -n $pid && -r /proc/$pid/cmdline ]] || return 1
  words=$(tr '\0' ' ' <"/proc/$pid/cmdline")
  [[ $words == *dockerd\ *"$ENGINE_SOCKET"* ]] || return 1
  echo "$pid"
}

# Bit 24 of the capability mask. Without it a privileged container cannot start.
lacks_resource_cap() {
  local mask
  mask=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
  ((!((16#$mask >> 24) & 1)))
}

up() {
  if docker_answers; then return; fi
  lock engine
  if own_engine_answers; then return; fi
  [[ -e /etc/debian_version && $(id -u) == 0 ]] ||
    die "no Docker daemon answers. Start Docker; only root on Debian gets an engine of its own."
  apt_install docker.io iptables ca-certificates
  # From Debian 13 on docker.io has the engine only.
  have docker || apt_install docker-cli
  step "Starting a container engine for this project (about 3 s)" engine-start start
}

start() {
  local arguments=(
    --host "unix://$ENGINE_SOCKET" --pidfile "$ENGINE_PIDFILE"
    --exec-root "$ENGINE_RUN_DIR/exec" --data-root "$ENGINE_DATA_DIR"
    # 256 networks of 254 addresses in one range, away from Docker's defaults
    # (172.17-172.31 in /16 steps), of which a developer's VPN often has some.
    --bip 10.213.0.1/24 --default-address-pool base=10.214.0.0/16,size=24
    --log-level warn
  )
  # The kernel's default of 128 is used up by three nodes and some pods; then
  # systemd and kubelets fail with "too many open files". Until the next boot.
  local instances=/proc/sys/fs/inotify/max_user_instances
  (($(cat $instances) >= 512)) || echo 512 >$instances || true

  install -d -m 711 "$ENGINE_RUN_DIR"
  install -d -m 711 "$ENGINE_DATA_DIR"
  # Left over from a crash or a machine restart; own_engine_pid found no owner.
  local pid
  if pid=$(own_engine_pid); then
    echo "process $pid does not answer, ending it"
    stop_process "$pid"
  fi
  rm -f "$ENGINE_PIDFILE" "$ENGINE_SOCKET" "$ENGINE_RUN_DIR"/exec/containerd/containerd.pid
  if lacks_resource_cap; then
    # Copied, so that a container started from one clone does not depend on
    # that clone's files being there when it is restarted.
    install -m 755 "$CLUSTER_DIR/runc-without-resource-cap.sh" "$ENGINE_DATA_DIR.runc"
    arguments+=(--add-runtime "corelane=$ENGINE_DATA_DIR.runc" --default-runtime corelane)
  fi
  if cpu_group containers >/dev/null; then arguments+=(--cgroup-parent "/$CPU_GROUP/containers"); fi
  enter_cpu_group engine
  detached "$LOG_DIR/dockerd.log" dockerd "${arguments[@]}"
  wait_until 60 started_or_gone "$detached_pid" || true
  if ! own_engine_answers; then
    tail -n 25 "$LOG_DIR/dockerd.log"
    stop_process "$detached_pid"
    return 1
  fi
}
started_or_gone() { own_engine_answers || process_gone "$1"; }

stop_process() {
  local pid=$1
  kill "$pid" 2>/dev/null || true
  wait_until 30 process_gone "$pid" || { kill -9 "$pid" 2>/dev/null || true; wait_until 5 process_gone "$pid"; }
}
process_gone() { [[ ! -e /proc/$1 || $(sed 's/.*) //; s/ .*//' "/proc/$1/stat") == Z ]]; }

down() {
  local pid
  lock engine
  if pid=$(own_engine_pid); then
    step "Stopping the project's container engine" engine-stop stop_process "$pid"
  fi
  rm -f "$ENGINE_SOCKET" "$ENGINE_PIDFILE"
  remove_cpu_groups
}

print_env() {
  docker_answers && return
  own_engine_answers || die "no container engine answers; run e2e/cluster/engine.sh up"
  echo "export DOCKER_HOST=unix://$ENGINE_SOCKET"
}

case ${1:-} in
  up) up ;;
  down) down ;;
  env) print_env ;;
  *) die "usage: engine.sh up|down|env" ;;
esac
