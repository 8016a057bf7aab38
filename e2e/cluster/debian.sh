# shellcheck shell=bash
# Debian by mmdebstrap. Source it after lib.sh.

# Keys of the Debian archive; of the package debian-archive-keyring, which apt has checked.
DEBIAN_KEYRING=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}

# mmdebstrap_checked SUITE TARGET OPTION...: mmdebstrap that believes no mirror. It reads lines "MIRROR SUITE COMPONENT"
# from standard input. The signature of each suite's InRelease is what all packages hang on, and only the keys of
# $DEBIAN_KEYRING count: not those of the machine's other repositories.
mmdebstrap_checked() {
  local suite=$1 target=$2
  shift 2
  [[ -s $DEBIAN_KEYRING ]] ||
    die "no keyring of the Debian archive ($DEBIAN_KEYRING): nothing could be checked. Install debian-archive-keyring"
  sed "s|^|deb [signed-by=$DEBIAN_KEYRING] |" | mmdebstrap --mode=root --keyring="$DEBIAN_KEYRING" "$@" "$suite" "$target" -
}
