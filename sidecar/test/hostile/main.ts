/**
 * `make test-hostile`: all hostile cases and floods against the real image, with honest clients beside, in turns with
 * pauses in which nobody attacks. Writes docs/benchmarks/hostile.{json,md,svg}. The last line says what has gone wrong;
 * the exit code is 1 when something has. `HOSTILE=floods,ping` tries those of that group, or with that in
 * their name.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';
import { Progress } from '../../../bench/lib/progress.ts';
import { runBench } from '../../../bench/lib/run-bench.ts';
import { percentile } from '../../../bench/lib/stats.ts';
import { table } from '../../../bench/lib/table.ts';
import { NODE_IMAGE } from '../../../e2e/harness/engine/docker.ts';
import { plot } from '../../../operator/plots/index.ts';
import { PORTS } from '../../../operator/src/api/names.ts';
import { cases, get, group, type HostileCase } from './cases.ts';
import { type Broken, type Honest, HostileFleet, type Outcome, wrongAnswers } from './fleet.ts';

const run = promisify(execFile);
const RESULTS = fileURLToPath(new URL('../../../docs/benchmarks/', import.meta.url));
const HONEST_PER_SECOND = 40;
/** Nobody attacks: before each attack, and after the last one. */
const PAUSE_SECONDS = 5;
/** Beside each attack: a p99 of fewer is made by a handful of requests. */
const HONEST_MIN = 1_000;
const ATTACK_SECONDS = Number(process.env.HOSTILE_SECONDS ?? Math.ceil((1.1 * HONEST_MIN) / HONEST_PER_SECOND));
const CONNECTIONS = 5_000;
const SLOW = ['idle', 'half', 'slow'];
/** The group of the loads that are no attacks. */
const BASELINE = 'baseline';

const isAttack = ({ group }: { group: string }) => group !== BASELINE;
/** The worker of the attack may still be busy with what it has got. */
const SETTLE_MS = 500;
/** No honest client waits for an answer for longer (apps/honest.mjs). */
const ANSWER_MS = 20_000;
const RATIO_GOAL = 1.2;

/** Milliseconds since 1970. */
interface Interval {
  begin: number;
  end: number;
}

interface Attack {
  group: string;
  name: string;
  /** How many cases it has. A load to compare with has none. */
  count: number;
  run: (hostile: HostileFleet) => Promise<{ outcomes?: Outcome[]; received?: string }>;
}

interface Row extends Broken {
  group: string;
  name: string;
  count: number;
  wrong: [string, string][];
  received: string;
  seconds: number;
  honest: ReturnType<typeof latency>;
  /** In the pauses before and after it. */
  without: ReturnType<typeof latency>;
}

function corpus(): Attack[] {
  const groups = [...new Set(cases.map(({ group }) => group))];
  return groups.map((name) => {
    const own = cases.filter(({ group }) => group === name);
    return {
      group: 'bytes',
      name,
      count: own.length,
      run: async (hostile) => ({ outcomes: await hostile.send(own, ATTACK_SECONDS) }),
    };
  });
}

/** What slow and many clients do; `inside` is a worker's own process, or what it can be made to do. */
function floods(): Attack[] {
  const attack = (port: number, name: string, kinds: string[], from: 'neighbour' | 'inside' = 'neighbour'): Attack => ({
    group: 'floods',
    name: `${port} ${name}`,
    count: kinds.length,
    run: async (hostile) => {
      const connections = from === 'inside' ? 200 : CONNECTIONS;
      const seen = await hostile.flood(port, connections, ATTACK_SECONDS, kinds, from);
      const answers = Object.entries(seen.answers).map(([status, count]) => `${count} x ${status}`);
      return { received: `${seen.opened} connections, ${answers.join(', ') || 'no answer'}` };
    },
  });
  return [
    attack(PORTS.health, 'idle, half and slow heads', SLOW),
    attack(PORTS.health, 'requests', [
      'requests:/livez',
      'requests:/readyz',
      'requests:/client/x',
      'requests:/nothing',
    ]),
    attack(PORTS.health, 'HTTP/2 preface', ['h2']),
    attack(PORTS.stats, 'idle, half and slow heads', SLOW),
    attack(PORTS.stats, 'pages', [
      'requests:/metrics',
      'requests:/',
      'requests:/corelane/metrics',
      'requests:/corelane/metrics?detail=1',
      'requests:/workers/0/metrics',
      'requests:/live',
    ]),
    attack(PORTS.stats, 'pages that nobody reads', ['unread:/metrics', 'unread:/']),
    attack(PORTS.stats, 'HTTP/2 preface', ['h2']),
    attack(PORTS.peers, 'idle, half and slow heads', SLOW),
    attack(PORTS.peers, 'requests and HTTP/2 preface', ['requests:/', 'h2']),
    attack(PORTS.http, 'idle, half and slow heads', SLOW),
    attack(PORTS.http, 'slow bodies', ['body']),
    attack(PORTS.http, 'ping and HTTP/2 preface', ['requests:/ping', 'h2']),
    attack(
      PORTS.firstWorkerRuntime,
      'from inside: idle, half, pages',
      ['idle', 'half', 'requests:/metrics', 'requests:/heap'],
      'inside',
    ),
  ];
}

/** One ordinary request for each page that the cases about connections ask for. */
function ordinary(): HostileCase[] {
  const asked = cases
    .filter(({ group }) => group === 'connections')
    .flatMap(({ parts }) => parts.flatMap((part) => String(part).match(/[?]id=outer/g) ?? []));
  return group(
    BASELINE,
    PORTS.http,
    asked.map((_unused, index) => [`ordinary-${index}`, /^200$/, get(`outer-o-${index}`, 'Connection: close')]),
  );
}

/**
 * Loads to compare the worst attacks with. An honest client asks for as many pages as the attack does. An nginx without
 * Corelane gets the same connections. Both take time of the processor that honest clients need, so no proxy could make
 * an attack cost them less.
 */
function baseline(): Attack[] {
  const flood = (name: string, kinds: string[]): Attack => ({
    group: BASELINE,
    name: `a bare nginx: ${name}`,
    count: 0,
    run: async (hostile) => {
      const { opened } = await hostile.floodBareNginx(CONNECTIONS, ATTACK_SECONDS, kinds);
      return { received: `${opened} connections` };
    },
  });
  const pages = ordinary();
  return [
    {
      group: BASELINE,
      name: `${pages.length} ordinary requests at once`,
      count: 0,
      run: async (hostile) => ({ outcomes: await hostile.send(pages, ATTACK_SECONDS) }),
    },
    flood('idle, half and slow heads', SLOW),
    flood('ping and HTTP/2 preface', ['requests:/ping', 'h2']),
  ];
}

/** Debian's slowhttptest; its name for what it does, and its options. */
function slowhttptest(): Attack[] {
  const kinds: [string, string[]][] = [
    ['slow heads (slowloris)', ['-H']],
    ['slow bodies', ['-B', '-s', '8192']],
    ['ranges', ['-R', '-a', '10', '-b', '3000']],
    ['slow reading', ['-X', '-w', '10', '-y', '20', '-n', '5', '-z', '32', '-k', '3']],
  ];
  return kinds.map(([name, options]) => ({
    group: 'slowhttptest',
    name,
    count: 1,
    run: async (hostile) => {
      const url = `http://${hostile.address}:${PORTS.http}/?id=outer-slow`;
      const until = Date.now() + ATTACK_SECONDS * 1_000;
      const left = () => Math.ceil((until - Date.now()) / 1_000);
      const pace = ['-p', '5', '-i', '5', '-r', '500', '-c', '2000', '-x', '24'];
      // The machine's program, with as little CPU time as the other attackers.
      const container = ['run', '--rm', '--network', 'host', '--cpu-shares', '2', '--ulimit', 'nofile=20000:20000'];
      const command = ['--volume', '/:/machine:ro', '--entrypoint', 'chroot', NODE_IMAGE, '/machine', 'slowhttptest'];
      let received = '';
      // slowhttptest ends when the server has closed all its connections. The attack goes on until its time is over.
      while (left() > 0) {
        const limit = ['-l', `${left()}`];
        const { stdout } = await run('docker', [...container, ...command, ...options, ...limit, ...pace, '-u', url], {
          maxBuffer: 64 * 1024 * 1024,
        }).catch((error) => error);
        const [, ended] = /exit status:\s*(.*)/i.exec(stripVTControlCharacters(String(stdout))) ?? [];
        if (ended === undefined) throw new Error(`slowhttptest did not run: ${String(stdout).slice(0, 500)}`);
        received ||= ended.trim();
      }
      return { received };
    },
  }));
}

function latency(honest: Honest[]) {
  const sorted = Float64Array.from(honest.filter(({ failed }) => failed === undefined).map(({ ms }) => ms)).sort();
  const failed = honest.filter((one) => one.failed !== undefined).length;
  const reasons = [...new Set(honest.flatMap((one) => one.failed ?? []))];
  return { count: honest.length, failed, reasons, p50: percentile(sorted, 50), p99: percentile(sorted, 99) };
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** What was seen of each attack, and all honest requests beside attacks and in the pauses. */
async function attackAll(attacks: Attack[]): Promise<{ rows: Row[]; beside: Honest[]; calm: Honest[] }> {
  const hostile = await HostileFleet.start();
  const progress = new Progress(attacks.length * (PAUSE_SECONDS + ATTACK_SECONDS));
  const rows: Row[] = [];
  const [attacked, calm]: [Interval[], Interval[]] = [[], []];
  const within = ({ begin, end }: Interval) => hostile.honest.filter(({ at }) => at >= begin && at < end);
  const pause = async () => {
    const begin = Date.now();
    await sleep(PAUSE_SECONDS * 1_000);
    calm.push({ begin, end: Date.now() });
    await sleep(SETTLE_MS);
  };
  await hostile.beginHonest(HONEST_PER_SECOND);
  await sleep(2_000);
  const told = new Set<string>();
  for (const attack of attacks) {
    await pause();
    await progress.step(
      `${attack.group}: ${attack.name}`,
      ATTACK_SECONDS,
      async () => {
        const begin = Date.now();
        const { outcomes = [], received = '' } = await attack.run(hostile);
        const interval = { begin, end: Date.now() };
        attacked.push(interval);
        await sleep(SETTLE_MS);
        const broken = await hostile.broken(outcomes);
        const fresh = (all: string[]) => all.filter((what) => !told.has(what) && told.add(what));
        const news = {
          takenOut: broken.takenOut,
          desync: fresh(broken.desync),
          overlaps: fresh(broken.overlaps),
          ended: fresh(broken.ended),
        };
        const { group, name, count } = attack;
        const row = {
          group,
          name,
          count,
          wrong: wrongAnswers(outcomes),
          received,
          seconds: (interval.end - begin) / 1_000,
          // So far: answers that are late are counted at the end.
          honest: latency(within(interval)),
          without: latency(calm.slice(-1).flatMap(within)),
          ...news,
        };
        rows.push(row);
        return row;
      },
      tell,
    );
  }
  await pause();
  await sleep(ANSWER_MS);
  await hostile.stop();
  return {
    rows: rows.map((row, index) => ({
      ...row,
      honest: latency(attacked.slice(index, index + 1).flatMap(within)),
      // Pauses on both sides: what else the machine does changes from minute to minute.
      without: latency(calm.slice(index, index + 2).flatMap(within)),
    })),
    beside: attacked.filter((_interval, index) => isAttack(attacks[index] as Attack)).flatMap(within),
    calm: calm.flatMap(within),
  };
}

function tell({ received, honest, wrong, takenOut, desync, overlaps, ended }: Row): string {
  const bad = [
    ...wrong.map(([name, answer]) => `${name}: ${JSON.stringify(answer)}`),
    ...takenOut,
    ...desync,
    ...overlaps,
    ...ended,
  ];
  const failed = [honest.failed, 'failed', ...honest.reasons].join(' ');
  return [`${received && `${received}; `}honest p99 ${honest.p99} ms, ${failed}`, ...bad].join('\n    ');
}

const ratioOf = ({ honest, without }: Row) => honest.p99 / without.p99;

/**
 * Answers of honest clients that were errors: a hostile neighbour must cost them none. The ratio is the p99 of all
 * honest requests beside attacks over the p99 of all honest requests in the pauses.
 */
function report({ rows, beside, calm }: Awaited<ReturnType<typeof attackAll>>) {
  const attacks = rows.filter(isAttack);
  // Faults count in all rows: damage of the last attack may show beside a load to compare with.
  const sum = (what: (row: Row) => number) => rows.reduce((total, row) => total + what(row), 0);
  return {
    cases: sum(({ count }) => count),
    taken_out: sum(({ takenOut }) => takenOut.length),
    desync: sum(({ desync }) => desync.length),
    overlaps: sum(({ overlaps }) => overlaps.length),
    ended: sum(({ ended }) => ended.length),
    wrong_answers: sum(({ wrong }) => wrong.length),
    honest_requests: beside.length,
    honest_requests_min: Math.min(...attacks.map(({ honest }) => honest.count)),
    honest_failed: sum(({ honest }) => honest.failed),
    honest_p99_ratio: latency(beside).p99 / latency(calm).p99,
    honest_p99_ratio_max: Math.max(...attacks.map(ratioOf)),
  };
}

type Report = ReturnType<typeof report>;

function markdown(rows: Row[], result: Report): string {
  const head = [
    'attack',
    'cases',
    'wrong answers',
    'taken out',
    'desync',
    'overlaps',
    'ended',
    'honest p50 ms',
    'p99 ms',
    'p99 in the pauses',
    'ratio',
    'failed',
  ];
  const line = (row: Row) => {
    const { name, count, wrong, takenOut, desync, overlaps, ended, honest, without } = row;
    return [
      ...[name, count, wrong.length, takenOut.length, desync.length, overlaps.length, ended.length],
      ...[honest.p50.toFixed(1), honest.p99.toFixed(1), without.p99.toFixed(1), ratioOf(row).toFixed(1), honest.failed],
    ];
  };
  const groups = [...new Set(rows.map(({ group }) => group))];
  const parts = groups.map(
    (group) => `## ${group}\n\n${table(head, rows.filter((row) => row.group === group).map(line))}`,
  );
  return `# Hostile clients, neighbours and programs

\`make test-hostile\`: two pods of two workers, their proxies with the memory limits of the plan; ${HONEST_PER_SECOND} honest requests a second beside (renders of
5 ms), ${PAUSE_SECONDS} s without an attack before and after each attack. All run on one machine; attackers are in a CPU cgroup with the least share there is, so that what they compute
themselves is not what is measured (what the kernel does for their packets is). The ratio of a row is the honest p99 beside the attack over the p99 of its two pauses.
\`honest_p99_ratio\` in the last line is the p99 of all ${result.honest_requests} honest requests beside attacks over the p99 of all honest requests in the pauses. Its goal is at most ${RATIO_GOAL}. The largest ratio of a row is ${result.honest_p99_ratio_max.toFixed(1)}.
Rows below "${BASELINE}" are no attacks, and these figures leave them out. They are loads to compare with: as many pages as the attack "connections" asks for, asked for by an honest client, and floods of an nginx without Corelane.

${parts.join('\n\n')}

${lastLine(result)}
`;
}

function lastLine({ cases, taken_out, desync, overlaps, ended, honest_p99_ratio }: Report): string {
  return `hostile: cases=${cases} taken_out=${taken_out} desync=${desync} overlaps=${overlaps} ended=${ended} honest_p99_ratio=${honest_p99_ratio.toFixed(2)}`;
}

function write(rows: Row[], result: Report): void {
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(`${RESULTS}hostile.json`, `${JSON.stringify({ ...result, rows }, undefined, 2)}\n`);
  writeFileSync(`${RESULTS}hostile.md`, markdown(rows, result));
  const groups = rows.filter(isAttack).map(({ name, honest, without }) => ({
    label: name,
    bars: [
      { series: 'in the pauses', value: without.p99, text: without.p99.toFixed(1) },
      { series: 'beside the attack', value: honest.p99, text: honest.p99.toFixed(1) },
    ],
  }));
  const subtitle = `milliseconds; goal for all attacks together: at most ${RATIO_GOAL} times the p99 of the pauses`;
  writeFileSync(`${RESULTS}hostile.svg`, plot([{ title: 'Honest clients beside an attack: p99', subtitle, groups }]));
}

await runBench(async () => {
  const wanted = process.env.HOSTILE?.split(',');
  const all = [...corpus(), ...floods(), ...slowhttptest(), ...baseline()];
  const attacks = all.filter(
    ({ group, name }) => !wanted || wanted.some((part) => part === group || name.includes(part)),
  );
  const seen = await attackAll(attacks);
  const { rows } = seen;
  const result = report(seen);
  console.log(markdown(rows, result).split('\n').slice(5, -3).join('\n'));
  if (!wanted) write(rows, result);
  if (result.wrong_answers + result.honest_failed > 0)
    console.log(`wrong answers: ${result.wrong_answers}, honest requests that failed: ${result.honest_failed}`);
  console.log(lastLine(result));
  const { taken_out, desync, overlaps, ended, wrong_answers, honest_failed } = result;
  const faults = taken_out + desync + overlaps + ended + wrong_answers + honest_failed;
  const isMeasured = result.honest_requests_min >= HONEST_MIN;
  if (!isMeasured)
    console.log(`an attack had ${result.honest_requests_min} honest requests beside it, not ${HONEST_MIN}`);
  process.exitCode = faults === 0 && isMeasured && result.honest_p99_ratio <= RATIO_GOAL ? 0 : 1;
});
