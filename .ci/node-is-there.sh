#!/usr/bin/env bash
# node-is-there.sh [FOLDER]: fails if `npm ci` has left no Node.js in FOLDER (default: here). Its package is an optional
# one (each platform has its own), and npm says nothing about an optional package that it refuses: because the platform
# is not among those of package.json, or because the bytes are not those of package-lock.json.
set -euo pipefail
cd "${1:-.}"
[[ -x node_modules/.bin/node ]] && node_modules/.bin/node --version >/dev/null && exit
rm -rf node_modules
echo "error: no Node.js for $(uname -s) $(uname -m) was installed: package.json has no package of it, or its bytes were" \
  "not those of package-lock.json. 'npm ci --loglevel=silly' tells" >&2
exit 1
