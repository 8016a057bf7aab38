#!/usr/bin/env bash
# npm-is-there.sh: fails unless node and npm can install this project's packages, and says where to get them. They only
# install: tests and programs run on the Node.js that the packages bring (node_modules/.bin/node).
set -euo pipefail
NODE_MAJOR_MIN=18
NPM_MAJOR_MIN=8

fail() {
  echo "error: $* Install Node.js $NODE_MAJOR_MIN or newer with npm: https://nodejs.org/en/download, or" \
    "'apt-get install nodejs npm' (Debian 12 or newer), or 'brew install node'." >&2
  exit 1
}

# require PROGRAM MAJOR_MIN
require() {
  local version
  command -v "$1" >/dev/null || fail "$1 is not installed or not on PATH, and installing the Node packages needs it."
  version=$("$1" --version 2>&1) || fail "'$1 --version' failed: $version."
  version=${version#v}
  [[ $version =~ ^[0-9]+\. ]] || fail "'$1 --version' printed no version: $version."
  ((${version%%.*} >= $2)) || fail "$1 $version at $(command -v "$1") is too old; $2 is the oldest that works."
}

require node "$NODE_MAJOR_MIN"
require npm "$NPM_MAJOR_MIN"
