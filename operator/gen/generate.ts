/**
 * Writes all that is made from the schema, the RBAC table and the lifecycle of workers:
 *   node operator/gen/generate.ts           writes
 *   node operator/gen/generate.ts --check   writes nothing, names what differs, exit 1
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { rules } from '../src/kube/rbac.ts';
import { checkPage } from './check-page.ts';
import { customResourceDefinition } from './crd.ts';
import { withPicture } from './lifecycle.ts';
import { referencePage } from './reference.ts';

const NOTE = 'Made by "make generate" from operator/src; do not edit.';

function yaml(value: unknown): string {
  return `# ${NOTE}\n${stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 })}`;
}

/** Content of every generated file by its path in the repository. */
function generatedFiles(): Record<string, string> {
  const crd = yaml(customResourceDefinition());
  return {
    'crds/corelane.dev_renderservices.yaml': crd,
    'charts/corelane/crds/corelane.dev_renderservices.yaml': crd,
    'charts/corelane/files/rbac-namespaced.yaml': yaml(rules.namespaced),
    'charts/corelane/files/rbac-own-namespace.yaml': yaml(rules.ownNamespace),
    'docs/reference.md': referencePage(),
    'docs/check.md': checkPage(),
    'docs/runtime.md': withPicture(readFileSync('docs/runtime.md', 'utf8')),
  };
}

function current(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

process.chdir(fileURLToPath(new URL('../..', import.meta.url)));
const check = process.argv.includes('--check');
const changed = Object.entries(generatedFiles()).filter(([file, content]) => current(file) !== content);
for (const [file, content] of changed) {
  console.log(`${check ? 'differs' : 'written'}: ${file}`);
  if (check) continue;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}
if (check && changed.length > 0) {
  console.error('Generated files differ from what the source makes: run "make generate" and commit the result.');
  process.exit(1);
}
