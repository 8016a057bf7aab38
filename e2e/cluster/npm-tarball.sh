#!/usr/bin/env bash
# npm-tarball.sh NAME VERSION FOLDER      downloads a package from npm into FOLDER and prints the path of the archive.
#                                         Its bytes are those of npm.sums, or nothing is left of it.
# npm-tarball.sh --pin NAME@VERSION...    writes into npm.sums what the registry says now; review and commit it
#
# For what is unpacked without an installation: Node.js and npm of the stand-in
# image, and the versions of Node.js that the worker runtime is tested with. All
# other packages stand in a package-lock.json, which npm checks by itself.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

SUMS=${NPM_SUMS:-$CLUSTER_DIR/npm.sums}

integrity_of() { # FILE -> sha512-... as npm writes it
  node -p '"sha512-" + crypto.createHash("sha512").update(fs.readFileSync(process.argv[1])).digest("base64")' "$1"
}

pin() { # NAME@VERSION
  local integrity
  integrity=$(npm view "$1" dist.integrity --loglevel=error)
  [[ $integrity == sha512-* ]] || die "the registry has no $1, or no sha512 of it"
  { awk -v id="$1" '$1 != id' "$SUMS"; echo "$1 $integrity"; } | LC_ALL=C sort -o "$SUMS"
}

if [[ ${1:-} == --pin ]]; then
  shift
  touch "$SUMS"
  for id in "$@"; do pin "$id"; done
  exit
fi

(($# == 3)) || die 'usage: npm-tarball.sh NAME VERSION FOLDER'
name=$1 version=$2 folder=$3
wanted=$([[ ! -e $SUMS ]] || awk -v id="$name@$version" '$1 == id { print $2 }' "$SUMS")
[[ -n $wanted ]] || die "$name@$version has no hash in e2e/cluster/npm.sums. Add it: e2e/cluster/npm-tarball.sh --pin $name@$version"
archive=$folder/$(npm pack --ignore-scripts --loglevel=error --pack-destination "$folder" "$name@$version" | tail -n 1)
got=$(integrity_of "$archive")
if [[ $got != "$wanted" ]]; then
  rm -f "$archive"
  die "$name@$version is not what npm.sums says: got $got, wanted $wanted"
fi
echo "$archive"
