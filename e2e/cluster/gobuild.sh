# shellcheck shell=bash disable=SC2034
# Builds Go programs of other projects into $BIN_DIR. Source it after lib.sh.
#
# Nearly all of them come from one module, build/go.mod: Kubernetes, etcd, containerd, helm and the others then share
# what they have in common (client-go, grpc, ...), which is compiled once and not five times. The few that do not fit in
# there are built in a throw-away module each (go_module_build).

GO_MODULE_DIR=$CLUSTER_DIR/build

# Another toolchain would be one more download, which no go.sum names. DWARF is of use to a debugger only, and takes a
# sixth of the time. GOGC: a compiler is a short process, in which there is little to collect.
export GOWORK=off GOTOOLCHAIN=local GOGC=${GOGC:-400}
GO_FLAGS='-mod=readonly -trimpath -buildvcs=false'
GO_COMPILER_FLAGS=-gcflags=all=-dwarf=false

# Seconds that a hundred packages take on one core. Estimates are made of it.
SECONDS_PER_100_PACKAGES=20

GO_PROGRAMS=(
  kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubeadm kubectl etcd etcdctl coredns
  metrics-server kind helm containerd containerd-shim-runc-v2 ctr crictl ptp loopback host-local portmap
)

# program NAME, of these: sets version and package.
program() {
  case $1 in
    kube-apiserver | kube-controller-manager | kube-scheduler | kube-proxy | kubelet | kubeadm | kubectl)
      version=$KUBERNETES_VERSION package=k8s.io/kubernetes/cmd/$1 ;;
    etcd) version=$ETCD_VERSION package=go.etcd.io/etcd/server/v3 ;;
    etcdctl) version=$ETCD_VERSION package=go.etcd.io/etcd/etcdctl/v3 ;;
    kind) version=$KIND_VERSION package=sigs.k8s.io/kind ;;
    helm) version=$HELM_VERSION package=helm.sh/helm/v3/cmd/helm ;;
    # Not the whole of it: the plug-ins of kubeadm's Corefile.
    coredns) version=$COREDNS_VERSION-$(hash_of "$GO_MODULE_DIR/coredns/main.go") package=./coredns ;;
    metrics-server) version=$METRICS_SERVER_VERSION package=sigs.k8s.io/metrics-server/cmd/metrics-server ;;
    containerd | containerd-shim-runc-v2 | ctr)
      version=$CONTAINERD_VERSION package=github.com/containerd/containerd/v2/cmd/$1 ;;
    ptp | loopback) version=$CNI_PLUGINS_VERSION package=github.com/containernetworking/plugins/plugins/main/$1 ;;
    host-local) version=$CNI_PLUGINS_VERSION package=github.com/containernetworking/plugins/plugins/ipam/$1 ;;
    portmap) version=$CNI_PLUGINS_VERSION package=github.com/containernetworking/plugins/plugins/meta/$1 ;;
    crictl) version=$CRICTL_VERSION package=sigs.k8s.io/cri-tools/cmd/crictl ;;
    *) die "gobuild.sh: no program $1 in build/go.mod" ;;
  esac
}

# binary NAME: prints where it is, or will be.
binary() {
  local version package
  program "$1"
  echo "$BIN_DIR/$1-$version"
}

# Several read their version from here; kubeadm refuses to work without one. The linker passes over what a program has
# not got.
go_ldflags() {
  local version=${KUBERNETES_VERSION#v} package
  printf -- '-s -w '
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf -- '-X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s -X %s.gitTreeState=clean ' \
      "$package" "$KUBERNETES_VERSION" "$package" "${version%%.*}" "$package" "$(cut -d. -f2 <<<"$version")" "$package"
  done
  printf -- '-X github.com/containerd/containerd/v2/version.Version=%s ' "$CONTAINERD_VERSION"
  printf -- '-X sigs.k8s.io/cri-tools/pkg/version.Version=%s ' "$CRICTL_VERSION"
  printf -- '-X helm.sh/helm/v3/internal/version.version=%s' "$HELM_VERSION"
}

# go_programs NAME...: builds those that are not there, all with one `go build`.
go_programs() {
  local name version package names=() packages=() count
  for name in "$@"; do [[ -x $(binary "$name") ]] || names+=("$name"); done
  ((${#names[@]})) || return 0
  # Taken only if something is to be built, so that nobody with everything in the cache waits for a run that builds.
  lock go-programs
  for name in "${names[@]}"; do
    program "$name"
    [[ -x $BIN_DIR/$name-$version ]] || packages+=("$package")
  done
  ((${#packages[@]})) || return 0
  go_is_there "$(named "${names[@]}")"
  step 'Fetching Go modules' go-modules go_fetch "${packages[@]}"
  count=$(wc -l <"$LOG_DIR/go-packages")
  plan_note expect first go-build $(seconds_for "$count")
  step "Compiling $(named "${names[@]}"): $count packages$(about_packages "$count"), once" go-build go_build "$count" "${packages[@]}"
}

named() { if (($# > 4)); then echo "$# programs ($1, $2, $3, ...)"; else (IFS=' '; echo "$*"); fi; }
seconds_for() { echo $((5 + $1 * SECONDS_PER_100_PACKAGES / 100 / $(cores))); } # PACKAGES
about_packages() { # COUNT
  (($1 < 100)) || echo ", about $(about "$(seconds_for "$1")") on $(cores) cores"
}

# go_is_there WHAT: ends the script with an error where WHAT cannot be compiled for want of Go.
go_is_there() {
  local oldest version
  oldest=$(awk '$1 == "go" { print $2; exit }' "$GO_MODULE_DIR/go.mod")
  have go || die "cannot compile $1: Go is not installed or not on PATH. Install Go $oldest or newer: https://go.dev/dl"
  version=$(go_version)
  [[ $(printf '%s\n' "$oldest" "$version" | sort -V | head -n 1) == "$oldest" ]] ||
    die "cannot compile $1: Go $version at $(command -v go) is too old. Install Go $oldest or newer (https://go.dev/dl)," \
      "and put its bin folder first in PATH. Corelane does not let Go download another version of itself."
}

# go_in FOLDER COMMAND...: runs COMMAND in the module of FOLDER. CGO_ENABLED=0, for programs that run in any image.
go_in() {
  cd "$1"
  shift
  GOFLAGS=$GO_FLAGS CGO_ENABLED=0 nice -n 10 "$@"
}
in_go_module() { go_in "$GO_MODULE_DIR" "$@"; } # COMMAND...

# go_fetch_in FOLDER NAME PACKAGE...: downloads the modules that the packages lack, and lists in $LOG_DIR/NAME-packages
# what Go's cache has not got compiled.
go_fetch_in() {
  local folder=$1 list=$LOG_DIR/$2-packages
  shift 2
  go_in "$folder" go list -deps $GO_COMPILER_FLAGS -f '{{if and .Stale (ne .Name "main")}}{{.ImportPath}}{{end}}' "$@" >"$list"
}
go_fetch() { go_fetch_in "$GO_MODULE_DIR" go "$@"; } # PACKAGE...

# go_build_in FOLDER OUT PACKAGE...: compiles one package into the file OUT, several into the folder OUT. OUT appears
# when it is whole, so a build cut short leaves nothing that looks finished.
go_build_in() {
  local folder=$1 out=$2
  shift 2
  rm -rf "$out.part"
  (($# == 1)) || mkdir -p "$out.part"
  go_in "$folder" go build $GO_COMPILER_FLAGS -ldflags '-s -w' -o "$out.part" "$@"
  mv "$out.part" "$out"
}

# go_compile TITLE NAME FOLDER OUT PACKAGE...: go_fetch_in and go_build_in, as two steps with the logs NAME-modules and
# NAME-build.
go_compile() {
  local title=$1 name=$2 folder=$3 out=$4 count
  shift 4
  step "Fetching the Go modules of $title" "$name-modules" go_fetch_in "$folder" "$name" "$@"
  count=$(wc -l <"$LOG_DIR/$name-packages")
  step "Compiling $title: $count packages$(about_packages "$count"), once" "$name-build" go_build_in "$folder" "$out" "$@"
}

go_build() { # COUNT PACKAGE...
  local count=$1 out=$BIN_DIR/.go path name pid
  shift
  rm -rf "$out"
  mkdir -p "$out"
  in_go_module go build -v $GO_COMPILER_FLAGS -ldflags "$(go_ldflags)" -o "$out/" "$@" &
  pid=$!
  tell_share "$pid" "$count" "$LOG_DIR/go-build.log"
  wait "$pid"
  # Go names a program by the last part of its path; a build cut short leaves nothing that looks finished.
  for path in "$out"/*; do
    name=${path##*/}
    [[ $name != server ]] || name=etcd
    mv "$path" "$(binary "$name")"
  done
}

# tell_share PID COUNT LOG: what a plan says of the build, every 20 s, until process PID ends.
tell_share() {
  local done_packages ticks=0
  while kill -0 "$1" 2>/dev/null; do
    sleep 0.5
    ((++ticks % 40 == 0)) && [[ -n ${CORELANE_PLAN:-} ]] || continue
    # A line per package.
    done_packages=$(wc -l <"$3")
    ((done_packages <= $2)) || done_packages=$2
    plan_note share go-build $((100 * done_packages / ($2 + 1)))
    say "  $done_packages of $2 packages are compiled" 2>&"$PROGRESS_FD"
  done
}

# ---- Modules of their own ----------------------------------------------------

# Hashes of all modules that go into these programs; pin-go.sh writes it.
GO_SUM=$CLUSTER_DIR/go.sum

# A module asks for the newest Go that one of its parts asks for, and may ask for no older one: for the one that is
# here.
go_version() { go env GOVERSION | sed -E 's/^go([0-9.]+).*/\1/'; }

# go_module_build MODULE VERSION COMMAND...: runs COMMAND in a throw-away module that
# requires MODULE. Unlike `go install pkg@version` this also works for modules
# with replace directives, which go install refuses, and
# believes no hash but those in $GO_SUM: -mod=readonly adds none.
go_module_build() {
  local module=$1 version=$2 dir
  shift 2
  go_is_there "$module"
  dir=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$dir'" EXIT
  cd "$dir" || return
  printf 'module corelane.local/build\n\ngo %s\n\nrequire %s %s\n' "$(go_version)" "$module" "$version" >go.mod
  cp "$GO_SUM" go.sum
  export GOFLAGS=$GO_FLAGS CGO_ENABLED=${CGO_ENABLED:-0}
  "$@"
}

# go_module_copy MODULE VERSION FOLDER: copies the source of a module, to build in it. Go heeds `replace` and `exclude`
# in the go.mod of the main module only, and the module's go.sum has the hashes of all modules that it is made of. The
# module's own hash is in $GO_SUM, so Go refuses a changed one.
go_module_copy() {
  go_module_build "$1" "$2" go mod download "$1"
  rm -rf "$3"
  cp -r "$(go env GOMODCACHE)/$1@$2" "$3"
  chmod -R u+w "$3"
}

# go_binary NAME VERSION MODULE PACKAGE [LDFLAGS [TAGS]]: one program. Builds at
# low priority: the machine is somebody's laptop, or runs the tests meanwhile.
go_binary() {
  local name=$1 version=$2 module=$3 package=$4 ldflags=${5:-} tags=${6:-}
  go_module_build "$module" "$version" \
    nice -n 10 go build $GO_COMPILER_FLAGS -ldflags "-s -w $ldflags" -tags "$tags" -o "$BIN_DIR/.$name-$version" "$package"
  # A build cut short must not leave something that looks finished.
  mv "$BIN_DIR/.$name-$version" "$BIN_DIR/$name-$version"
}

# ---- Failures ----------------------------------------------------------------

# What Go writes where it cannot download. Only lines of Go itself: kubectl and docker fail with the same words.
UNREACHABLE='dial tcp|no such host|connection refused|i/o timeout|TLS handshake timeout|proxyconnect|x509:|unexpected EOF'
UNREACHABLE+='|context deadline exceeded|(403|407|502|503|504) [A-Z]|module lookup disabled'
UNREACHABLE="^(go: |[^ ]+\.go:[0-9:]+ ).*($UNREACHABLE)"

# advice LOG: prints what to do about a step that failed, from what its log says. `step` shows it below the log's end.
advice() {
  if grep -qi 'no space left on device' "$1"; then
    echo "The disk is full. Compiling Kubernetes needs 25 GB, for $CACHE_DIR and Go's two caches. Free some space" \
      "('go clean -cache' empties the larger one), then run the command again: finished programs are kept."
  elif grep -q 'requires go >= ' "$1"; then
    echo "Go $(go_version) is too old: $(grep -om1 'requires go >= [0-9.]*[0-9]' "$1"). Install that version or a newer one" \
      "(https://go.dev/dl), and put its bin folder first in PATH."
  elif grep -qE 'checksum mismatch|SECURITY ERROR' "$1"; then
    echo "A downloaded Go module is not the one whose hash is in go.sum: something between its author and this machine" \
      "changed it. Ask whoever runs the module proxy $(go env GOPROXY). Do not take the new hash."
  elif grep -q 'missing go.sum entry' "$1"; then
    echo "A Go module has no hash in go.sum. After a change in versions.env run e2e/cluster/pin-go.sh, which writes it."
  elif grep -qE "$UNREACHABLE" "$1"; then
    echo "Go cannot download modules from GOPROXY=$(go env GOPROXY). Check the network, and HTTPS_PROXY where you need one," \
      "or set GOPROXY to a module proxy that this machine reaches. Then run the command again: downloads are kept."
  elif grep -qE '(compile|link): signal: killed|runtime: out of memory' "$1"; then
    echo "The compiler ran out of memory. Free some, then run the command again: compiled packages are kept."
  fi
}
