#!/usr/bin/env bash
# bundle.sh: the thread that sends spans, with its libraries, in one file: sidecar/runtime/dist/spans.cjs. What is in it
# stands beside it: spans.cdx.json (CycloneDX).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=sidecar/runtime/dist
mkdir -p "$out"
version=$(node_modules/.bin/node -p 'require("./package.json").version')
# main-fields: of the ES modules esbuild leaves out what nobody calls, which is seven eighths.
node_modules/.bin/esbuild sidecar/spans/thread.ts --bundle --platform=node --target=node18.19 --format=cjs --minify \
  --main-fields=module,main --legal-comments=none --log-level=warning --define:__CORELANE_VERSION__="\"$version\"" \
  --outfile="$out/spans.cjs" --metafile="$out/spans.meta.json"
node_modules/.bin/node operator/gen/sbom.ts "$out/spans.meta.json" corelane-spans >"$out/spans.cdx.json.part"
rm "$out/spans.meta.json"
mv "$out/spans.cdx.json.part" "$out/spans.cdx.json"
