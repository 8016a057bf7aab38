#!/usr/bin/env bash
# base-images.sh [debian|node|kind-node]...: makes the base images of our
# Dockerfiles available and prints their names, one NAME=IMAGE per line:
#
#   DEBIAN_IMAGE=debian:trixie-slim          DEBIAN_IMAGE=corelane.local/debian:trixie-slim
#   NODE_IMAGE=node:24-trixie-slim      or   NODE_IMAGE=corelane.local/node:24-trixie-slim
#
# for `docker build --build-arg DEBIAN_IMAGE=...`. Pulled where a registry can be
# reached; else stand-ins made by mmdebstrap from this machine's Debian mirror.
# Stand-ins are for tests on this machine only: they carry its trust store.
# With CORELANE_RELEASE=1 there is none: the official images, by digest, or an error.
# Default: debian node. kind-node is the Debian release that node-image.sh needs.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER_DIR/debian.sh"

# Inside the stand-ins; away from /etc/ssl/certs, which `apt-get install
# ca-certificates` in a Dockerfile would overwrite.
TRUST_FILE=/usr/local/share/corelane/ca-certificates.crt

# The mirrors come from the machine's own apt sources: it may have no other.
mirror() { # LABEL -> base URI; empty if the machine has none
  apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
    awk -v label="$1" '$1 == label && !found++ { print $2 }'
}

updates_suite() { # the machine's own, if it has one
  apt-get indextargets --format '$(LABEL) $(RELEASE)' 'Created-By: Packages' | grep '^Debian .*-updates$' || true
}

debian_stand_in() { # SUITE TAG
  local suite=$1 tag=$2 work main security
  # apt knows a repository's label only after an update.
  main=$(mirror Debian)
  [[ -n $main ]] || { apt-get update; main=$(mirror Debian); }
  [[ -n $main ]] || { echo "no Debian mirror in this machine's apt sources"; return 1; }
  security=$(mirror Debian-Security)
  work=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  {
    echo "$main $suite main"
    [[ -z $(updates_suite) ]] || echo "$main $suite-updates main"
    [[ -z $security ]] || echo "$security $suite-security main"
  } >"$work/sources"

  # What the slim images leave out, now and in later installs.
  cat >"$work/slim" <<'DPKG'
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/lintian/*
path-exclude=/usr/share/locale/*
force-unsafe-io
DPKG
  # The same habits as the official image: no service starts, no package archive
  # stays, no translations are fetched, no file waits for the disk (above).
  cat >"$work/apt" <<'APT'
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
APT
  printf '#!/bin/sh\nexit 101\n' >"$work/policy-rc.d"
  sed 's/^/deb /' "$work/sources" >"$work/sources.list"

  # Machines without a registry often trust a certificate authority of their own
  # (a filtering proxy). Without it `npm ci` in a build fails: unknown issuer.
  cat >"$work/hook" <<'HOOK'
#!/bin/sh
set -e
cd "$(dirname "$0")"
install -D -m 644 slim "$1/etc/dpkg/dpkg.cfg.d/slim"
install -D -m 644 apt "$1/etc/apt/apt.conf.d/slim"
install -D -m 644 sources.list "$1/etc/apt/sources.list"
install -D -m 755 policy-rc.d "$1/usr/sbin/policy-rc.d"
install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$1$TRUST_FILE"
install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/ca-certificates.crt"
rm -rf "$1"/var/log/*.log "$1"/var/cache/debconf/*-old
HOOK
  chmod 755 "$work/hook"
  TRUST_FILE=$TRUST_FILE mmdebstrap_checked "$suite" "$work/root.tar" --variant=minbase \
    --dpkgopt="$work/slim" --aptopt='Acquire::Languages "none"' --customize-hook="$work/hook" <"$work/sources"
  docker import --change "ENV NODE_EXTRA_CA_CERTS=$TRUST_FILE SSL_CERT_FILE=$TRUST_FILE" \
    --change 'CMD ["bash"]' --message "mmdebstrap stand-in, not for release" "$work/root.tar" "$tag"
}

# The official Node image is Debian plus Node, npm and a user `node` (1000). Here
# the binary comes from npm's own packaging of it.
node_files() { # FOLDER
  local arch node npm
  case $(uname -m) in
    x86_64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) echo "no Node binary for $(uname -m)"; return 1 ;;
  esac
  cd "$1"
  mkdir -p root/bin root/lib/node_modules/npm
  node=$("$CLUSTER_DIR/npm-tarball.sh" "node-linux-$arch" "$NODE_VERSION" "$1")
  npm=$("$CLUSTER_DIR/npm-tarball.sh" npm "$NPM_VERSION" "$1")
  tar -xzf "$node" --strip-components=2 -C root/bin package/bin/node
  tar -xzf "$npm" --strip-components=1 -C root/lib/node_modules/npm
  rm "$node" "$npm"
  chmod 755 root/bin/node
  ln -s ../lib/node_modules/npm/bin/npm-cli.js root/bin/npm
  ln -s ../lib/node_modules/npm/bin/npx-cli.js root/bin/npx
  ln -s node root/bin/nodejs
}

node_stand_in() { # BASE TAG FOLDER
  cd "$3"
  cat >Dockerfile <<DOCKERFILE
FROM $1
RUN groupadd --gid 1000 node && useradd --uid 1000 --gid node --shell /bin/bash --create-home node
COPY --chown=0:0 root/ /usr/local/
RUN node --version && npm --version
ENV NODE_VERSION=$NODE_VERSION
CMD ["node"]
DOCKERFILE
  # Classic builder: the engine may be Debian's (20.10), without buildx.
  DOCKER_BUILDKIT=0 docker build --network=host -t "$2" .
}

# For a release nothing will do but the official image, by digest.
release() { [[ -n ${CORELANE_RELEASE:-} ]]; }
resolve_for_release() { # IMAGE -> sets resolved
  pull "$1" || die "$1 cannot be pulled; a stand-in is not for release"
  resolved=$pulled
}

resolve_debian() { # SUITE-slim IMAGE -> sets resolved
  local image=$1 suite tag
  if release; then resolve_for_release "$image"; return; fi
  suite=${image#debian:}
  suite=${suite%-slim}
  tag=$STANDIN/$image
  # A stand-in that is there stays in use: no network on the warm path.
  if ! image_exists "$tag" && pull "$image"; then resolved=$pulled; return; fi
  resolved=$tag
  if image_exists "$tag"; then return; fi
  # In a subshell, which gives the lock back: two of these are never held in two orders.
  (
    lock "base-$suite"
    if image_exists "$tag"; then exit; fi
    apt_install mmdebstrap debian-archive-keyring gpgv
    step "Making a stand-in for $image by mmdebstrap (about 20 s), once" "base-$suite" debian_stand_in "$suite" "$tag"
  )
}

resolve_node() {
  local tag=$STANDIN/$NODE_BASE
  if release; then resolve_for_release "$NODE_BASE"; return; fi
  if ! image_exists "$tag"; then
    if pull "$NODE_BASE"; then resolved=$pulled; return; fi
    (
      lock base-node
      if image_exists "$tag"; then exit; fi
      context=$(mktemp -d)
      # shellcheck disable=SC2064
      trap "rm -rf '$context'" EXIT
      # Before Debian, which another run may be making.
      step "Fetching Node.js $NODE_VERSION (about 5 s), once" base-node-files node_files "$context"
      resolve_debian "$DEBIAN_BASE"
      step "Making a stand-in for $NODE_BASE (about 10 s), once" base-node node_stand_in "$resolved" "$tag" "$context"
    )
  fi
  resolved=$tag
}

(($#)) || set -- debian node
if release; then
  for image in "$DEBIAN_BASE" "$NODE_BASE"; do
    pinned "$image" >/dev/null || die "$image has no digest in e2e/cluster/images.sums, which a release needs." \
      "Where a registry can be reached: e2e/cluster/pin-images.sh $image"
  done
fi
use_engine
for image in "$@"; do
  case $image in
    debian) resolve_debian "$DEBIAN_BASE"; echo "DEBIAN_IMAGE=$resolved" ;;
    node) resolve_node; echo "NODE_IMAGE=$resolved" ;;
    kind-node) resolve_debian "debian:$KIND_NODE_DEBIAN_SUITE-slim"; echo "KIND_NODE_BASE_IMAGE=$resolved" ;;
    *) die "base-images.sh: no image $image" ;;
  esac
done
