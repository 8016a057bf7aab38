# shellcheck shell=bash disable=SC2034
# Builds Go programs of other projects into $BIN_DIR. Source it after lib.sh.

# go_module_build MODULE VERSION COMMAND...: runs COMMAND in a throw-away module
# that requires MODULE. Unlike `go install pkg@version` this also works for
# modules with replace directives (Kubernetes, etcd), which go install refuses.
go_module_build() {
  local module=$1 version=$2 dir
  shift 2
  have go || die "Go is needed to build $module (no registry in reach to pull it from)"
  dir=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$dir'" EXIT
  cd "$dir" || return
  printf 'module corelane.local/build\n\ngo 1.26.0\n\nrequire %s %s\n' "$module" "$version" >go.mod
  export GOFLAGS='-mod=mod -trimpath -buildvcs=false' GOWORK=off CGO_ENABLED=${CGO_ENABLED:-0}
  "$@"
}

# go_binary NAME VERSION MODULE PACKAGE [LDFLAGS [TAGS]]: one program. Builds at
# low priority: the machine is somebody's laptop, or runs the tests meanwhile.
go_binary() {
  local name=$1 version=$2 module=$3 package=$4 ldflags=${5:-} tags=${6:-}
  go_module_build "$module" "$version" \
    nice -n 10 go build -ldflags "-s -w $ldflags" -tags "$tags" -o "$BIN_DIR/.$name-$version" "$package"
  # A build cut short must not leave something that looks finished.
  mv "$BIN_DIR/.$name-$version" "$BIN_DIR/$name-$version"
}
