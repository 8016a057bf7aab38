#!/usr/bin/env bash
# bundle.sh FOLDER: the operator in one file, FOLDER/main.mjs, and what is in it: main.cdx.json (CycloneDX).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mkdir -p "$1"
out=$(cd "$1" && pwd)
options=(
  --bundle --platform=node --target=node24 --format=esm --minify --keep-names --legal-comments=none --log-level=warning
  --banner:js="import{createRequire}from'node:module';const require=createRequire(import.meta.url);"
  # Package `debug` takes it if it is there. Here it is there for Jest's sake.
  --external:supports-color
)
node_modules/.bin/esbuild operator/src/main.ts "${options[@]}" --outfile="$out/main.mjs" --metafile="$out/main.meta.json"
# Last and in one piece: it is what make looks at.
node_modules/.bin/node operator/gen/sbom.ts "$out/main.meta.json" corelane-operator >"$out/main.cdx.json.part"
mv "$out/main.cdx.json.part" "$out/main.cdx.json"
