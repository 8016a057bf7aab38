#!/bin/sh
# unpack.sh FOLDER PACKAGE...: unpacks these packages of Debian for arm64, what they need and what every Debian has,
# into FOLDER. Runs in a container of arm64.Dockerfile, as root. No program of theirs runs.
set -eu
root=$1
shift
work=$(mktemp -d)
mkdir -p "$work/partial" "$root"
: >"$work/status"
# An empty machine for arm64: apt brings all that is essential, and all dependencies.
for_arm64="-o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State::status=$work/status \
  -o Dir::State::lists=$work/lists -o Dir::Cache::archives=$work -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
  -o APT::Install-Recommends=false -o APT::Sandbox::User=root -o DPkg::Post-Invoke::=true"
mkdir -p "$work/lists/partial"
# shellcheck disable=SC2086
apt-get $for_arm64 update
# shellcheck disable=SC2086
apt-get $for_arm64 install --download-only --yes '?essential' "$@"

mkdir -p "$root/var/lib/dpkg"
for package in "$work"/*.deb; do
  dpkg-deb --extract "$package" "$root"
  # For scanners: which packages these are.
  { dpkg-deb --field "$package"; printf 'Status: install ok installed\n\n'; } >>"$root/var/lib/dpkg/status"
done
# What their scripts would have made.
for name in passwd group; do cp "$root/usr/share/base-passwd/$name.master" "$root/etc/$name"; done
rm -rf "$root"/usr/share/man "$root"/usr/share/info "$root"/usr/share/locale "$root"/usr/share/lintian "$root"/var/cache/*
find "$root/usr/share/doc" -type f ! -name copyright -delete
rm -rf "$work"
