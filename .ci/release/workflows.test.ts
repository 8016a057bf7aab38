/** .github/workflows: what cannot be tried outside of GitHub is held to rules here. */
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

interface Step {
  uses?: string;
  run?: string;
  with?: Record<string, unknown>;
}
interface Job {
  permissions?: Record<string, string>;
  strategy?: { matrix?: Record<string, string[]> };
  environment?: string;
  needs?: string[];
  'timeout-minutes'?: number;
  steps: Step[];
}
interface Workflow {
  on: Record<string, unknown>;
  permissions?: Record<string, string>;
  jobs: Record<string, Job>;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const files = globSync('.github/workflows/*', { cwd: root }).map((path) => {
  const text = readFileSync(join(root, path), 'utf8');
  return { name: basename(path), text, workflow: parse(text) as Workflow };
});
const jobs = files.flatMap(({ name, workflow }) =>
  Object.entries(workflow.jobs).map(([id, job]) => ({ name: `${name}: ${id}`, job })),
);
const targets = new Set(
  [...readFileSync(join(root, 'Makefile'), 'utf8').matchAll(/^([a-z0-9-]+):.*## /gm)].map(([, target]) => target),
);
/** Targets that a job takes from its matrix. */
const MATRIX = ['verify', 'test', 'e2e'];

test('there are CI, the nightly run and release', () => {
  expect(files.map(({ name }) => name).sort()).toEqual(['ci.yaml', 'nightly.yaml', 'release.yaml']);
});

test('the nightly run has every suite of make test-all', () => {
  const suites = JSON.parse(execFileSync(process.execPath, ['.ci/all.mjs', '--list'], { cwd: root }).toString());
  const nightly = files.find(({ name }) => name === 'nightly.yaml')?.workflow.jobs.suite;
  expect(nightly?.strategy?.matrix?.suite).toEqual(suites);
});

test.each(files)('$name pins every action by its commit, and says which version that is', ({ text }) => {
  const uses = text.split('\n').filter((line) => /\buses:/.test(line));
  expect(uses.length).toBeGreaterThan(1);
  expect(uses.filter((line) => !/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line))).toEqual([]);
});

test('one action has one version everywhere', () => {
  const pins = new Set(files.flatMap(({ text }) => text.match(/[\w-]+\/[\w-]+@[0-9a-f]{40}/g) ?? []));
  const actions = [...pins].map((pin) => pin.split('@')[0]);
  expect(new Set(actions).size).toBe(actions.length);
});

test.each(files)('$name gives no job anything that the job does not name', ({ workflow }) => {
  expect(workflow.permissions).toEqual({});
  // It would run with the rights of the repository what somebody else has written.
  expect(Object.keys(workflow.on)).not.toContain('pull_request_target');
});

test('only the job that publishes may write; it waits for all others and for a person', () => {
  const writing = jobs.filter(({ job }) => Object.values(job.permissions ?? { all: 'write' }).includes('write'));
  expect(writing.map(({ name }) => name)).toEqual(['release.yaml: publish']);
  expect(writing[0]?.job).toMatchObject({
    environment: 'release',
    permissions: { contents: 'write', packages: 'write', 'id-token': 'write', attestations: 'write' },
  });
  const all = Object.keys(files.find(({ name }) => name === 'release.yaml')?.workflow.jobs ?? {});
  // Those that it does not name are needed by one that it names.
  expect([...(writing[0]?.job.needs ?? []), 'images', 'publish'].sort()).toEqual(all.sort());
});

test.each(jobs)('$name calls targets of the Makefile and nothing else, and ends by itself', ({ name, job }) => {
  const runs = job.steps.flatMap(({ run }) => (run === undefined ? [] : [run]));
  expect(runs.length).toBeGreaterThan(0);
  for (const run of runs) {
    const [, target, matrix] =
      /^(?:sudo -E env "PATH=\$PATH" )?make (?:([a-z0-9-]+)|(\$\{\{ matrix\.target \}\}))(?: [A-Z]+=(?:[a-z]+|\$\{\{ matrix\.suite \}\}))*$/.exec(
        run,
      ) ?? [];
    for (const made of matrix ? MATRIX : [target]) expect([run, targets.has(made)]).toEqual([run, true]);
  }
  expect(job['timeout-minutes']).toBeLessThanOrEqual(name.startsWith('nightly') ? 180 : 90);
});

test.each(jobs)('$name leaves no token in the checkout', ({ job }) => {
  for (const { uses, with: options } of job.steps) {
    if (uses?.startsWith('actions/checkout@')) expect(options).toMatchObject({ 'persist-credentials': false });
  }
});
