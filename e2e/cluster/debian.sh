# shellcheck shell=bash
# Debian by debootstrap. Source it after lib.sh.

# Keys of the Debian archive; of the package debian-archive-keyring, which apt has checked.
DEBIAN_KEYRING=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}

# debootstrap_checked SUITE FOLDER MIRROR OPTION...: debootstrap that believes no
# mirror. Without a keyring it would only warn, and take whatever comes: the
# signature of the suite's InRelease is the one thing that all packages hang on.
debootstrap_checked() {
  local suite=$1 folder=$2 mirror=$3
  shift 3
  [[ -s $DEBIAN_KEYRING ]] ||
    die "no keyring of the Debian archive ($DEBIAN_KEYRING): nothing could be checked. Install debian-archive-keyring"
  debootstrap --force-check-gpg --keyring="$DEBIAN_KEYRING" "$@" "$suite" "$folder" "$mirror"
}
