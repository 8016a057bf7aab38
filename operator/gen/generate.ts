/**
 * Writes all that is made from the schema, the RBAC table, the lifecycle of workers, the tables of metrics, the
 * simulator, the benches' figures, and the list of required tests that the cache fails:
 *   node operator/gen/generate.ts           writes
 *   node operator/gen/generate.ts --check   writes nothing, names what differs, exit 1
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { requiredTests } from '../../sidecar/test/http-cache-tests/required.ts';
import type { WaitingStudy } from '../simulate/waiting-study.ts';
import { rules } from '../src/kube/rbac.ts';
import { rulesFile } from './alerts/rules.ts';
import { withBlock } from './block.ts';
import { checkPage } from './check-page.ts';
import { customResourceDefinition } from './crd.ts';
import { dashboardFiles } from './dashboards/dashboards.ts';
import {
  besidePeers,
  type Drain,
  type Faults,
  type FirstHour,
  type Fleet,
  firstCommands,
  overLoad,
} from './figures.ts';
import { withPicture } from './lifecycle.ts';
import { OPERATOR_METRICS } from './metrics/operator.ts';
import { metricsTable } from './metrics/page.ts';
import { POD_METRICS } from './metrics/pod.ts';
import { referencePage } from './reference.ts';
import { requestsOfPod, whatNginxAdmits } from './sizes.ts';
import { waitingPicture } from './waiting.ts';
import { podsForLoad, signalsOverLoad, thresholdsInCrowd } from './waiting-figures.ts';

const NOTE = 'Made by "make generate" from operator/src; do not edit.';

function yaml(value: unknown): string {
  return `# ${NOTE}\n${stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 })}`;
}

/** What a bench has written. */
function measured<T>(name: string): T {
  return JSON.parse(readFileSync(`docs/benchmarks/${name}.json`, 'utf8')) as T;
}

/** A page with parts of it made anew, by their names. */
function page(file: string, blocks: Record<string, string>): Record<string, string> {
  const made = (text: string, [block, content]: [string, string]) => withBlock(text, block, content);
  return { [file]: Object.entries(blocks).reduce(made, readFileSync(file, 'utf8')) };
}

/** Of all that the simulator tries, for the page about scaling. */
const CROWD_POLICIES = [
  ...['CPU 20/15', 'occupancy 60/45', 'occupancy 20/15'].map((policy) => `Corelane, ${policy}`),
  'HPA 70 %',
];

/** Content of every generated file by its path in the repository. */
function generatedFiles(): Record<string, string> {
  const crd = customResourceDefinition();
  const fleet = measured<Fleet>('fleet');
  const waiting = measured<WaitingStudy>('simulate-waiting');
  return {
    'crds/corelane.dev_renderservices.yaml': yaml(crd),
    // Its metadata is the chart's (templates/crd.yaml).
    'charts/corelane/files/crd-spec.yaml': yaml({ spec: crd.spec }),
    'charts/corelane/files/rbac-namespaced.yaml': yaml(rules.namespaced),
    'charts/corelane/files/rbac-own-namespace.yaml': yaml(rules.ownNamespace),
    'charts/corelane/files/rules.yaml': rulesFile(),
    ...dashboardFiles(),
    'docs/reference.md': referencePage(),
    'docs/check.md': checkPage(),
    'docs/runtime.md': withPicture(readFileSync('docs/runtime.md', 'utf8')),
    ...page('docs/cache.md', { 'required tests': requiredTests() }),
    ...page('docs/metrics.md', {
      operator: metricsTable(OPERATOR_METRICS),
      pod: metricsTable(POD_METRICS.filter(({ detail }) => !detail)),
      detail: metricsTable(POD_METRICS.filter(({ detail }) => detail)),
    }),
    ...page('docs/edge.md', { budget: whatNginxAdmits() }),
    ...page('docs/sizing.md', { requests: requestsOfPod(), pods: podsForLoad(waiting) }),
    ...page('docs/scaling.md', { crowd: thresholdsInCrowd(waiting, CROWD_POLICIES) }),
    ...page('docs/concurrency.md', { signals: signalsOverLoad(waiting) }),
    ...page('docs/how-to/p99-is-high-at-60-percent-cpu.md', { fleet: overLoad(fleet) }),
    ...page('README.md', {
      'first commands': firstCommands(measured<FirstHour>('first-hour')),
      figures: besidePeers(measured<Faults>('faults'), fleet, measured<Drain>('drain')),
    }),
    'docs/waiting.svg': waitingPicture(true),
    'docs/waiting-still.svg': waitingPicture(false),
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
