#!/usr/bin/env bash
# clean.sh [--dry-run]: removes all that these scripts made on this machine, and
# nothing else: cluster, test API servers, images named corelane.local/*, the
# engine if it is ours, .state and the cache. The next start builds anew (some
# minutes where there is no registry). Not touched: Debian packages, Go's
# own caches, kind's Docker network, and images that were pulled.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dry=
[[ ${1:-} != --dry-run ]] || dry=1
[[ -n $dry || $# == 0 ]] || die "usage: clean.sh [--dry-run]"

run() { # TITLE COMMAND...
  local title=$1
  shift
  if [[ -n $dry ]]; then say "would: $title"; else say "$title"; "$@"; fi
}

clean_engine_objects() {
  local label=corelane.local/test-apiserver ids
  ids=$(docker ps -aq --filter "label=$label")
  # shellcheck disable=SC2086
  [[ -z $ids ]] || run "remove the test API servers of all clones: $(wc -w <<<"$ids") containers" docker rm -f -v $ids >/dev/null
  ids=$(docker network ls -q --filter "label=$label")
  # shellcheck disable=SC2086
  [[ -z $ids ]] || run "remove their $(wc -w <<<"$ids") networks" docker network rm $ids >/dev/null
  ids=$(docker image ls --format '{{.Repository}}:{{.Tag}}' | grep "^$STANDIN/" || true)
  # Someone's container may still use one; that must not keep the rest.
  # shellcheck disable=SC2086
  [[ -z $ids ]] || run "remove $(wc -w <<<"$ids") images $STANDIN/*" docker image rm -f $ids >/dev/null || true
}

# An engine that was killed leaves mounts behind, its data folder on itself among
# them. Deepest first.
unmount_below() { # DIR
  local point
  awk -v dir="$1" '$2 == dir || index($2, dir "/") == 1 { print $2 }' /proc/self/mounts | sort -r |
    while read -r point; do umount "$point" || true; done
}

# Where the engine's mounts are still there, they are not emptied. macOS's rm has
# no such option, and there is no engine of ours there.
remove() { rm -rf "${one_file_system[@]}" "$@"; }
one_file_system=()
[[ $(uname) != Linux ]] || one_file_system=(--one-file-system)

# Named one by one: CORELANE_CACHE may be a folder that holds other things, too.
clean_cache() {
  cd "$CACHE_DIR"
  [[ ! -e /proc/self/mounts ]] || unmount_below "$ENGINE_DATA_DIR"
  remove bin log lock engine engine.runc tools-* node-* no-registry
  cd /
  rmdir "$CACHE_DIR" 2>/dev/null || say "kept $CACHE_DIR: other files are in it"
}

clean_run_dir() {
  [[ -e $ENGINE_RUN_DIR ]] || return 0
  unmount_below "$ENGINE_RUN_DIR"
  remove "$ENGINE_RUN_DIR"
}

run "delete the kind cluster $CLUSTER_NAME" "$CLUSTER_DIR/cluster.sh" down
if engine_reachable; then
  (use_engine; clean_engine_objects)
fi
run "stop the project's container engine, if it runs" "$CLUSTER_DIR/engine.sh" down
run "remove $STATE_DIR" rm -rf "$STATE_DIR"
if [[ -e $ENGINE_SOCKET && -z $dry ]]; then die "the engine did not stop; its data in $ENGINE_DATA_DIR is kept"; fi
run "remove the cache $CACHE_DIR ($(du -sh "$CACHE_DIR" 2>/dev/null | cut -f1))" clean_cache
run "remove $ENGINE_RUN_DIR" clean_run_dir
