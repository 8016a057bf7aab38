# shellcheck shell=bash disable=SC2034
# Shared by the scripts beside it: versions, names, a registry on loopback. Source it; it is not a command.
source "$(dirname "${BASH_SOURCE[0]}")/../../e2e/cluster/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"
cd "$CLONE_DIR"

RELEASE_DIR=$CLONE_DIR/.ci/release
DIST=$CLONE_DIR/dist
VERSION=$(sed -nE 's/^  "version": "(.*)",$/\1/p' package.json)
# Where published images and charts are; charts/corelane/values.yaml names the same.
REPOSITORY=ghcr.io/corelane
ARCHITECTURES='amd64 arm64'

# This machine's, as images call it.
native_arch() {
  case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64 | arm64) echo arm64 ;;
    *) die "no images are made for $(uname -m)" ;;
  esac
}

# Archives of the same files are the same: sorted, without owners, dated as the commit.
reproducible_tar() {
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}" "$@"
}

# crane on PATH: a registry for tests, and what joins images of several architectures. Built once.
use_crane() {
  local folder=$CACHE_DIR/crane-$CRANE_VERSION module=github.com/google/go-containerregistry
  if [[ ! -x $folder/crane ]]; then
    lock tool-crane
    [[ -x $BIN_DIR/crane-$CRANE_VERSION ]] || step "Building crane $CRANE_VERSION (about 10 s), once" build-crane \
      go_binary crane "$CRANE_VERSION" $module $module/cmd/crane "-X $module/cmd/crane/cmd.Version=$CRANE_VERSION"
    mkdir -p "$folder"
    ln -sfn "$BIN_DIR/crane-$CRANE_VERSION" "$folder/crane"
  fi
  PATH=$folder:$PATH
}

# registry_up FOLDER: an image registry on loopback that keeps its blobs there; sets $registry and $registry_pid. The
# caller ends it.
registry_up() {
  mkdir -p "$1"
  crane registry serve --address 127.0.0.1:0 --disk "$1" >"$1.log" 2>&1 &
  registry_pid=$!
  wait_until 20 grep -q 'serving on port' "$1.log" || { cat "$1.log" >&2; die "the registry does not start"; }
  registry=127.0.0.1:$(sed -nE 's/.*serving on port ([0-9]+).*/\1/p' "$1.log")
}
