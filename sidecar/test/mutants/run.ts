/**
 * Breaks the data plane in every way of mutants.ts and runs the test that must notice:
 *   node sidecar/test/mutants/run.ts [part of a name ...]
 * SHARD=2/4 tries the second quarter of them: all take longer than one may have the machine for.
 * Mutants of a configuration are made by the test harness; for the others an image is built on the sidecar image.
 * Exit code 1 if one survives. A test that hangs has not noticed anything.
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { docker, prepare, SIDECAR_IMAGE } from '../../../e2e/harness/engine/docker.ts';
import { parserComplaints } from '../parsers.ts';
import type { Mutant } from './mutant.ts';
import { mutants, mutated } from './mutants.ts';
import { changesNothing, IMAGE_FILES, originals, PROGRAM_FILES } from './originals.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const LIMIT_MS = 180_000;
/** A test that waits in vain has noticed; the limit of the tests themselves is for a busy machine. */
const WAIT_SECONDS = 30;
/** Tests wait most of their time. */
const AT_ONCE = 2;

interface Outcome {
  caught: boolean;
  /** The test that failed, or why none did. */
  by: string;
}

/** A mutant that changes nothing proves nothing, nor does one that no proxy would start with. */
async function checkMutants(chosen: Mutant[]): Promise<void> {
  const idle = chosen.filter(changesNothing);
  if (idle.length > 0) throw new Error(`These mutants change nothing: ${idle.map(({ name }) => name).join('; ')}`);
  const files = new Map<string, string>();
  for (const [index, mutant] of chosen.entries()) {
    if (IMAGE_FILES[mutant.file] || PROGRAM_FILES[mutant.file]) continue;
    for (const [variant, text] of originals(mutant).entries())
      files.set(`${index}-${variant}.${mutant.file}`, mutated(mutant, mutant.file, text));
  }
  const complaints = await parserComplaints(files);
  if (complaints !== `checked ${files.size} files`) throw new Error(`No valid configuration: ${complaints}`);
}

/** Name of an image that has the mutated file. */
async function imageOf(mutant: Mutant): Promise<string> {
  const [, target] = IMAGE_FILES[mutant.file] ?? [];
  const source = PROGRAM_FILES[mutant.file];
  if (!target && !source) return SIDECAR_IMAGE;
  const image = `corelane.local/mutant:${process.pid}-${mutants.indexOf(mutant)}`;
  const folder = mkdtempSync(join(tmpdir(), 'corelane-mutant-'));
  const text = mutated(mutant, mutant.file, originals(mutant)[0] ?? '');
  try {
    if (source) {
      for (const part of ['Dockerfile', 'sidecar']) cpSync(join(ROOT, part), join(folder, part), { recursive: true });
      writeFileSync(join(folder, source), text);
      // As e2e/images.sh has built the image: all but what the mutant changes is cached.
      const bases = ['DEBIAN_IMAGE', 'NODE_IMAGE'].flatMap((name) => ['--build-arg', `${name}=${process.env[name]}`]);
      await docker('build', '--quiet', '--network=host', ...bases, '--target', 'sidecar', '--tag', image, folder);
      return image;
    }
    const mode = target?.startsWith('/usr/local/bin/') ? 0o755 : 0o644;
    writeFileSync(join(folder, 'file'), text, { mode });
    writeFileSync(join(folder, 'Dockerfile'), `FROM ${SIDECAR_IMAGE}\nCOPY file ${target}\n`);
    await docker('build', '--quiet', '--tag', image, folder);
    return image;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What Jest says of one test file, as far as it matters here. */
interface JestReport {
  testResults: { message: string; assertionResults: { fullName: string; status: string }[] }[];
}

async function runTests(mutant: Mutant, image: string): Promise<Outcome> {
  const [file, test] = mutant.caughtBy.split(/: (.*)/s) as [string, string];
  const folder = mkdtempSync(join(tmpdir(), 'corelane-mutant-'));
  const report = join(folder, 'report.json');
  const jest = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];
  const choice = [
    '--selectProjects',
    'sidecar',
    'load',
    '--testPathPatterns',
    `sidecar/test/${file}(\\.load)?\\.test`,
    '-t',
    literally(test),
  ];
  const choices = { CORELANE_LOAD_PART: 'sidecar', CORELANE_TEST_WAIT_SECONDS: String(WAIT_SECONDS) };
  const env = { ...process.env, ...choices, CORELANE_MUTANT: mutant.name, CORELANE_SIDECAR_IMAGE: image };
  try {
    await promisify(execFile)(process.execPath, [...jest, ...choice, '--json', `--outputFile=${report}`], {
      ...{ cwd: ROOT, env, timeout: LIMIT_MS, killSignal: 'SIGKILL', maxBuffer: 64 * 1024 * 1024 },
    }).catch(() => undefined); // that tests fail is what should happen; the report tells
    return outcome(JSON.parse(readFileSync(report, 'utf8')) as JestReport);
  } catch (error) {
    return { caught: false, by: `no result within ${LIMIT_MS / 1000} s (${(error as Error).message})` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function outcome({ testResults }: JestReport): Outcome {
  const ran = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status !== 'pending');
  const failed = ran.find(({ status }) => status === 'failed');
  if (failed) return { caught: true, by: failed.fullName };
  return { caught: false, by: ran.length === 0 ? 'no such test' : `${ran.length} passed: ${ran[0]?.fullName}` };
}

/** A pattern for Jest's -t that matches just the text. */
function literally(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** One that cannot be built is caught by nobody: the others are tried all the same. */
async function tryOne(mutant: Mutant): Promise<Outcome> {
  let image: string;
  try {
    image = await imageOf(mutant);
  } catch (error) {
    const said = /error: .*/.exec((error as Error).message)?.[0] ?? (error as Error).message;
    return { caught: false, by: `cannot be built: ${said}` };
  }
  const outcome = await runTests(mutant, image);
  if (image !== SIDECAR_IMAGE) await docker('image', 'rm', '--force', image);
  return outcome;
}

/** What SHARD asks for, which is written as Jest's --shard. */
function shard(all: Mutant[]): Mutant[] {
  const { SHARD = '1/1' } = process.env;
  const [, index, count] = (/^([1-9]\d?)\/([1-9]\d?)$/.exec(SHARD) ?? []).map(Number);
  if (!index || !count || index > count) throw new Error(`SHARD=${SHARD}: it is 1/4, 2/4, 3/4 or 4/4, for four parts`);
  const at = (part: number) => Math.round((part * all.length) / count);
  return all.slice(at(index - 1), at(index));
}

const wanted = process.argv.slice(2);
const chosen = shard(mutants.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part))));
await prepare();
await checkMutants(chosen);
console.log(`Trying ${chosen.length} mutants, ${AT_ONCE} at a time (about 10 s each)`);
const began = Date.now();
const survivors: Mutant[] = [];
let tried = 0;

async function tell(mutant: Mutant, place: string): Promise<boolean> {
  const start = Date.now();
  const { caught, by } = await tryOne(mutant);
  const took = `${Math.round((Date.now() - start) / 1000)} s`;
  console.log(`${place} | ${mutant.breaks} ${mutant.name} | ${by} | ${caught ? 'ok' : 'SURVIVED'} | ${took}`);
  return caught;
}

const left = chosen.values();
async function tryOneAfterTheOther(): Promise<void> {
  for (const mutant of left) {
    tried += 1;
    if (!(await tell(mutant, `${tried}/${chosen.length}`))) survivors.push(mutant);
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, tryOneAfterTheOther));

// A test that has noticed it once can notice it. Where the machine is busy the data plane may be too late to do the
// wrong thing: a supervisor that answers after a second has said nothing.
let survived = 0;
if (survivors.length > 0) console.log('Trying again what has survived, one at a time');
for (const mutant of survivors) if (!(await tell(mutant, 'again'))) survived += 1;
console.log(`${Math.round((Date.now() - began) / 1000)} s`);
console.log(`mutants: ${chosen.length - survived} caught, ${survived} survived`);
process.exitCode = survived > 0 || chosen.length === 0 ? 1 : 0;
