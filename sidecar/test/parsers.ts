/** The real parsers, in the image that ships, over any number of files in one container. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runSidecar } from '../../e2e/harness/engine/docker.ts';
import { PORTS } from '../../operator/src/api/names.ts';

/** What the entry point else holds open for HAProxy. */
const ENTRANCE = [
  ...['front', 'replay'].map((name) => `CORELANE_${name.toUpperCase()}=unix@/run/corelane/${name}.sock`),
  `CORELANE_HEALTH=:${PORTS.health}`,
];

/** Names the files that a parser complains about, and says what it said. A warning counts. */
const CHECK = `
  export HOSTNAME=pod CORELANE_ANY_ADDRESS='*' ${ENTRANCE.join(' ')}
  check() {
    file=$1; shift
    "$@" "$file" >/tmp/said 2>&1 && ! grep -q warn /tmp/said || { echo "$file"; cat /tmp/said; }
  }
  for file in /cases/*.haproxy.cfg; do [ ! -e "$file" ] || check "$file" haproxy -c -dW -f; done
  for file in /cases/*.nginx.conf; do [ ! -e "$file" ] || check "$file" nginx -t -q -e stderr -c; done
  echo "checked $(ls /cases | wc -l) files"`;

/** What the parsers say of files whose names end with .haproxy.cfg or .nginx.conf; `checked N files` when nothing. */
export async function parserComplaints(files: Map<string, string>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'corelane-parse-'));
  try {
    const cases = join(folder, 'cases');
    mkdirSync(cases);
    for (const [file, text] of files) writeFileSync(join(cases, file), text);
    for (const path of [folder, cases]) chmodSync(path, 0o755);
    return await runSidecar(['--volume', `${cases}:/cases:ro`], 'sh', '-c', CHECK);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
