#!/usr/bin/env bash
# changed-bytes.sh npm|go|debian|images: what is downloaded is refused when one byte of it differs from what was pinned.
# Each case makes a tiny origin (on loopback or in a folder), shows that the pinned bytes are taken, changes one, and
# wants the refusal of the very function that the builds call. The origin is a clever one: it tells hashes of what it
# serves.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/cluster/lib.sh"
source "$CLUSTER_DIR/gobuild.sh"
source "$CLUSTER_DIR/debian.sh"

work=$(mktemp -d)
origin_pid=
cleanup() {
  [[ -z $origin_pid ]] || kill "$origin_pid"
  chmod -R u+w "$work"
  rm -rf "$work"
}
trap cleanup EXIT

# taken COMMAND...
taken() { ("$@") >"$work/out" 2>&1 || { cat "$work/out"; die "refused, but nothing was changed: $*"; }; }

# refused MESSAGE COMMAND...
refused() {
  local message=$1
  shift
  if ("$@") >"$work/out" 2>&1; then cat "$work/out"; die "taken, but it should not be: $*"; fi
  grep -qE -e "$message" "$work/out" || { cat "$work/out"; die "refused for another reason than '$message': $*"; }
}

# ---- npm: archives with a hash in npm.sums, packages with one in a package-lock.json ----

npm_case() {
  local registry archive=$work/tiny-1.0.0.tgz
  mkdir -p "$work/tiny/bin" "$work/empty" "$work/app"
  echo '{"name":"tiny","version":"1.0.0","bin":{"tiny":"bin/tiny"}}' >"$work/tiny/package.json"
  echo 'right' >"$work/tiny/bin/tiny"
  npm pack --silent --pack-destination "$work" "$work/tiny" >/dev/null
  node "$CLONE_DIR/.ci/tiny-registry.mjs" tiny 1.0.0 "$archive" >"$work/registry" &
  origin_pid=$!
  wait_until 20 test -s "$work/registry"
  registry=$(cat "$work/registry")
  # A cache of its own, each time: npm would not ask again for what it has.
  export npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false
  export npm_config_registry=$registry npm_config_cache=$work/cache NPM_SUMS=$work/npm.sums

  refused 'has no hash in' "$CLUSTER_DIR/npm-tarball.sh" tiny 1.0.0 "$work/empty"
  "$CLUSTER_DIR/npm-tarball.sh" --pin tiny@1.0.0
  taken "$CLUSTER_DIR/npm-tarball.sh" tiny 1.0.0 "$work/empty"
  echo '{"dependencies":{"tiny":"1.0.0"}}' >"$work/app/package.json"
  (cd "$work/app" && npm install --package-lock-only --silent)
  taken npm ci --prefix "$work/app"
  [[ -e $work/app/node_modules/tiny/bin/tiny ]] || die 'npm ci has installed nothing'

  rm -rf "$work/empty/"* "$work/cache"
  echo 'wrong' >"$work/tiny/bin/tiny"
  npm pack --silent --pack-destination "$work" "$work/tiny" >/dev/null
  refused 'is not what npm.sums says' "$CLUSTER_DIR/npm-tarball.sh" tiny 1.0.0 "$work/empty"
  [[ -z $(ls "$work/empty") ]] || die 'the refused archive is still there'
  refused EINTEGRITY npm ci --prefix "$work/app"

  # npm goes on without an optional package that it has refused. So does `make setup`, to its check of the result.
  sed -i.old 's/"dependencies"/"optionalDependencies"/; s/"integrity"/"optional": true, "integrity"/' \
    "$work/app/package.json" "$work/app/package-lock.json"
  (cd "$work/app" && npm ci --silent) || true
  [[ ! -e $work/app/node_modules/tiny ]] || die 'npm ci has installed an optional package with a changed byte'
  refused 'no Node.js' "$CLONE_DIR/.ci/node-is-there.sh" "$work/app"
}

# ---- Go: modules with a hash in go.sum ----

go_proxy() { # CONTENT: the module example.com/tiny v1.0.0 in a file:// proxy
  local folder=$work/proxy/example.com/tiny/@v
  mkdir -p "$folder"
  echo '{"Version":"v1.0.0"}' >"$folder/v1.0.0.info"
  printf 'module example.com/tiny\n\ngo 1.22\n' >"$folder/v1.0.0.mod"
  mkdir -p "$work/example.com/tiny@v1.0.0"
  cp "$folder/v1.0.0.mod" "$work/example.com/tiny@v1.0.0/go.mod"
  printf 'package main\n\nfunc main() { println("%s") }\n' "$1" >"$work/example.com/tiny@v1.0.0/main.go"
  (cd "$work" && GOFLAGS=-trimpath CGO_ENABLED=0 go run "$CLONE_DIR/.ci/zip.go" "$folder/v1.0.0.zip" example.com/tiny@v1.0.0/{go.mod,main.go})
}

tiny_binary() { # CACHE
  GOMODCACHE=$work/$1 go_binary tiny v1.0.0 example.com/tiny example.com/tiny
}

# The way of most programs: one module for all of them, which stands in the repository.
tiny_program() { # CACHE
  program() { version=v1.0.0 package=example.com/tiny; }
  GOMODCACHE=$work/$1 go_programs tiny
}

go_case() {
  BIN_DIR=$work
  if ! have go; then
    # Then this machine takes its programs from a registry; nothing is built here.
    refused 'Go is not installed' tiny_binary none
    return
  fi
  go_proxy right
  # The origin's word is all there is: no checksum database knows example.com/tiny.
  export GOPROXY=file://$work/proxy GOSUMDB=off GONOSUMDB=
  GO_SUM=/dev/null
  refused 'missing go.sum entry' tiny_binary cache-1
  GO_MODULE_DIR=$work/module
  mkdir "$GO_MODULE_DIR"
  printf 'module example.com/all\n\ngo 1.22\n\nrequire example.com/tiny v1.0.0\n' >"$GO_MODULE_DIR/go.mod"
  refused 'missing go.sum entry' tiny_program cache-1
  GO_SUM=$work/go.sum
  (
    GO_SUM=/dev/null GOMODCACHE=$work/cache-2
    export GOMODCACHE
    # shellcheck disable=SC2016
    go_module_build example.com/tiny v1.0.0 bash -c 'GOFLAGS=-mod=mod go list -deps example.com/tiny && cp go.sum "$0"' "$work/go.sum"
  ) >/dev/null
  cp "$work/go.sum" "$GO_MODULE_DIR/go.sum"
  taken tiny_binary cache-3
  rm "$work/tiny-v1.0.0"
  taken tiny_program cache-3
  [[ -x $work/tiny-v1.0.0 ]] || die 'nothing was built'
  rm "$work/tiny-v1.0.0"
  go_proxy wrong
  refused 'checksum mismatch' tiny_binary cache-4
  refused 'checksum mismatch' tiny_program cache-5
  [[ ! -e $work/tiny-v1.0.0 ]] || die 'a program was built from changed source'
}

# ---- Debian: packages that hang on the signature of InRelease ----

release() { # writes and signs what describes the archive in $mirror
  local index=main/binary-$arch/Packages
  mkdir -p "$mirror/dists/sid/main/binary-$arch"
  {
    cat "$work/deb/DEBIAN/control"
    printf 'Filename: pool/apt.deb\nSize: %s\nSHA256: %s\n\n' "$(stat -c %s "$mirror/pool/apt.deb")" "$(hash "$mirror/pool/apt.deb")"
  } >"$mirror/dists/sid/$index"
  cd "$mirror/dists/sid"
  printf '%s\n' 'Suite: sid' 'Codename: sid' 'Components: main' "Architectures: $arch" "SHA256:" \
    " $(hash "$index") $(stat -c %s "$index") $index" "Date: $(date -Ru)" 'Description: tiny' |
    gpg --batch --yes --quiet --clearsign -o InRelease
}
hash() { sha256sum "$1" | cut -d' ' -f1; }

# bootstrap: only up to the unpacking, which is all that a mirror has a say in.
bootstrap() {
  rm -rf "$work/root"
  mmdebstrap_checked sid "$work/root" --variant=extract --include=apt --format=directory <<<"copy://$mirror sid main"
}

# fetch: what is unpacked in the images (../Dockerfile) without being installed. apt checks it all the same.
fetch() {
  local apt=$work/apt
  rm -rf "$apt"
  mkdir -p "$apt"/{lists,archives}/partial
  cd "$apt"
  echo "deb [signed-by=$DEBIAN_KEYRING] copy://$mirror sid main" >sources.list
  printf '%s\n' "Dir::Etc::SourceList \"$apt/sources.list\";" 'Dir::Etc::SourceParts "/dev/null";' \
    "Dir::State::Lists \"$apt/lists\";" 'Dir::State::Status "/dev/null";' "Dir::Cache \"$apt\";" \
    'APT::Sandbox::User "root";' >apt.conf
  APT_CONFIG=$apt/apt.conf apt-get -q update
  APT_CONFIG=$apt/apt.conf apt-get -q download apt
}

# altered FILE WORD MESSAGE: the mirror serves WORD instead of what it is; then all is as before.
altered() {
  cp "$mirror/$1" "$work/kept"
  LC_ALL=C sed -i "$2" "$mirror/$1"
  ! cmp -s "$mirror/$1" "$work/kept" || die "nothing was changed in $1"
  refused "$3" bootstrap
  refused "$3" fetch
  mv "$work/kept" "$mirror/$1"
  taken bootstrap
  taken fetch
}

debian_case() {
  if [[ ! -e /etc/debian_version || $(id -u) != 0 ]]; then
    say 'stand-ins are made by root on Debian only: nothing is downloaded here'
    return
  fi
  apt_install mmdebstrap debian-archive-keyring gpgv gpg gpg-agent
  mirror=$work/mirror
  arch=$(dpkg --print-architecture)
  export GNUPGHOME=$work/gpg
  install -d -m 700 "$GNUPGHOME"
  gpg --batch --quiet --passphrase '' --quick-generate-key tiny ed25519 sign never
  gpg --batch --export >"$work/tiny.gpg"

  mkdir -p "$work/deb/DEBIAN" "$mirror/pool"
  printf '%s\n' 'Package: apt' 'Version: 1' 'Architecture: all' 'Maintainer: tiny <tiny@example.com>' \
    'Priority: required' 'Section: admin' 'Description: tiny' >"$work/deb/DEBIAN/control"
  dpkg-deb -b "$work/deb" "$mirror/pool/apt.deb" >/dev/null
  (release)

  DEBIAN_KEYRING=$work/none.gpg
  refused 'no keyring of the Debian archive' bootstrap
  DEBIAN_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
  refused 'NO_PUBKEY' bootstrap
  refused 'NO_PUBKEY' fetch
  DEBIAN_KEYRING=$work/tiny.gpg
  taken bootstrap
  altered dists/sid/InRelease 's/^Description: tiny/Description: tinx/' 'BADSIG|invalid'
  altered "dists/sid/main/binary-$arch/Packages" 's/^Version: 1/Version: 2/' 'Hash Sum mismatch|unexpected size'
  altered pool/apt.deb 's/debian-binary/debian-binarx/' 'Hash Sum mismatch|unexpected size'
  rm "$mirror/dists/sid/InRelease"
  refused 'does not have a Release file' bootstrap
  refused 'does not have a Release file' fetch
  gpgconf --kill all
}

# ---- images: names with a digest in images.sums; that the engine checks digests is the engine's own test ----

images_case() {
  export IMAGE_SUMS=$work/images.sums CORELANE_RELEASE=1
  echo "$DEBIAN_BASE sha256:$(printf '0%.0s' {1..64})" >"$IMAGE_SUMS"
  refused "$NODE_BASE has no digest" "$CLUSTER_DIR/base-images.sh"
  [[ $(pinned "$DEBIAN_BASE") == "$DEBIAN_BASE@sha256:000"* ]] || die 'a digest is not used'
}

case ${1:-} in
  npm | go | debian | images) "$1_case" ;;
  *) die 'usage: changed-bytes.sh npm|go|debian|images' ;;
esac
