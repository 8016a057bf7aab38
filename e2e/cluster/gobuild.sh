# shellcheck shell=bash disable=SC2034
# Builds Go programs of other projects into $BIN_DIR. Source it after lib.sh.

# Hashes of all modules that go into these programs; pin-go.sh writes it.
GO_SUM=$CLUSTER_DIR/go.sum

# A module asks for the newest Go that one of its parts asks for, and may ask for no older one: for the one that is
# here.
go_version() { go env GOVERSION | sed -E 's/^go([0-9.]+).*/\1/'; }

# go_module_build MODULE VERSION COMMAND...: runs COMMAND in a throw-away module that
# requires MODULE. Unlike `go install pkg@version` this also works for modules
# with replace directives (Kubernetes, etcd), which go install refuses, and
# believes no hash but those in $GO_SUM: -mod=readonly adds none.
go_module_build() {
  local module=$1 version=$2 dir
  shift 2
  have go || die "Go is needed to build $module (no registry in reach to pull it from)"
  dir=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$dir'" EXIT
  cd "$dir" || return
  printf 'module corelane.local/build\n\ngo %s\n\nrequire %s %s\n' "$(go_version)" "$module" "$version" >go.mod
  cp "$GO_SUM" go.sum
  # Another toolchain would be one more download, which go.sum does not name.
  export GOFLAGS='-mod=readonly -trimpath -buildvcs=false' GOWORK=off GOTOOLCHAIN=local CGO_ENABLED=${CGO_ENABLED:-0}
  [[ $module != k8s.io/kubernetes ]] || replace_staging_modules "$version"
  "$@"
}

# Kubernetes' own go.mod points its staging modules (k8s.io/api, ...) at folders
# that are not part of the published module; the same code is published as
# k8s.io/X, of Kubernetes v1.N.P with the tag v0.N.P.
replace_staging_modules() { # KUBERNETES_VERSION
  local version=$1 gomod module
  go mod download "k8s.io/kubernetes@$version"
  gomod=$(go env GOMODCACHE)/cache/download/k8s.io/kubernetes/@v/$version.mod
  # In a replace block, or required as v0.0.0.
  for module in $(sed -nE -e 's#^[[:space:]]*(k8s\.io/[a-z0-9-]+) => \./staging.*#\1#p' \
    -e 's#^[[:space:]]*(k8s\.io/[a-z0-9-]+) v0\.0\.0$#\1#p' "$gomod" | sort -u); do
    go mod edit -replace "$module=$module@$KUBERNETES_STAGING_VERSION"
  done
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
