/** Tables of measured figures beside peers, from the files that the benches have written: they cannot drift apart. */
import { table } from './block.ts';

export interface Faults {
  results: {
    system: string;
    scenario: string;
    outcome: { failedUnstarted: number; overlaps: number; latency: { p99: number } };
    runawayMs?: (number | null)[];
  }[];
  chain: { system: string; method: string; addedMs: number }[];
}

export interface Fleet {
  points: {
    system: string;
    load: number;
    workersPerPod: number;
    latency: { p99: number };
    bound: { p99: number };
  }[];
}

/** Runs on kind under load, each made of phases; the phase `all` has the sums. */
export interface Drain {
  stories: {
    story: string;
    requests: number;
    phases: { name: string; failed: Record<string, number>; lost: number }[];
  }[];
}

export interface FirstHour {
  machine: { cores: number; load: number };
  parts: { name: string; seconds: number; result: string }[];
}

/** Columns, as the benches call them, and their heads. */
const SYSTEMS = ['corelane', 'cluster', 'pm2', 'nginx', 'queue-proxy'];
const HEADS = ['**Corelane**', 'Node cluster', 'PM2', 'nginx, least_conn', "Knative's queue-proxy"];
/** Load of the fleet, of all its workers. */
const LOAD = 0.8;
const ABSENT = '';

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}

function ofFaults(
  { results }: Faults,
  scenario: string,
  figure: (found: Faults['results'][number]) => string,
): string[] {
  return SYSTEMS.map((system) => {
    const found = results.find((result) => result.system === system && result.scenario === scenario);
    return found ? figure(found) : ABSENT;
  });
}

function pointOf({ points }: Fleet, system: string, load: number) {
  return points.find((point) => point.system === system && point.load === load && point.workersPerPod > 1);
}

/** p99 of a fleet under load; nobody has measured PM2 and nginx there. */
function ofFleet(fleet: Fleet): string[] {
  return SYSTEMS.map((system) => {
    const point = pointOf(fleet, system, LOAD);
    return point ? whole(point.latency.p99) : ABSENT;
  });
}

function seconds(times: (number | null)[] = []): string {
  const back = times.filter((time) => time !== null);
  if (back.length < times.length) return 'never';
  return `${(Math.min(...back) / 1000).toFixed(1)} to ${(Math.max(...back) / 1000).toFixed(1)}`;
}

/** What a way through the proxies adds; cluster and PM2 have no proxy, and nginx alone was not measured. */
function ofTheWay({ chain }: Faults): string[] {
  return SYSTEMS.map((system) => {
    const found = chain.find((way) => way.system === system && way.method === 'GET');
    return found ? found.addedMs.toFixed(2) : ABSENT;
  });
}

/** What was done to the fleet in each story of the bench on kind. */
const DISTURBANCES: Record<string, string> = {
  drain: 'during rollouts, pod deletions, evictions, node drains and scaling',
  faults: 'while workers were killed, frozen, stuck and out of memory, and while nginx and HAProxy were killed',
};

/** One story of the bench on kind: its own requests, failures and losses, and the phases that lost something. */
function ofStory({ story, requests, phases }: Drain['stories'][number]): string {
  const all = phases.find(({ name }) => name === 'all');
  if (!all) throw new Error(`drain.json: the story "${story}" has no phase "all", which has its sums`);
  const failed = Object.values(all.failed).reduce((sum, times) => sum + times, 0);
  const losses = phases.filter(({ name, lost }) => name !== 'all' && lost > 0);
  const where = losses.map(({ name, lost }) => `${name}: ${whole(lost)}`).join(', ');
  const disturbance = DISTURBANCES[story] ?? `in the story "${story}"`;
  return `- ${whole(requests)} requests ${disturbance}: ${whole(failed)} failed, ${whole(all.lost)} lost${where && ` (${where})`}.`;
}

function onKind({ stories }: Drain): string[] {
  return [
    'On a kind cluster under load ([drain](docs/benchmarks/drain.md)); a request is lost if it failed although no worker had begun it:',
    '',
    ...stories.map(ofStory),
  ];
}

const FIRST_COMMANDS: [string, string][] = [
  ['run', '`make run` up to the first page, nothing cached'],
  ['demo_cold', '`make demo`, nothing cached: Kubernetes is compiled'],
  ['demo_warm', '`make demo` after `make down`'],
  ['test_cold', '`make test`, nothing cached: etcd and the API server are compiled'],
];
const SHOWN_IN_MINUTES_S = 150;
/** The last lines of `make run` (as the bench sees it), `make demo` and `make test`. */
const GOOD_LAST_LINE = /^(page: rendered|demo: ok=\d+ failed=0 overlaps=0|\d+ passed, 0 failed)$/;

function duration(seconds: number): string {
  return seconds < SHOWN_IN_MINUTES_S ? `${whole(seconds)} s` : `${whole(seconds / 60)} min`;
}

/** How long the first commands took. A run that failed is not the time that a command takes. */
export function firstCommands({ machine, parts }: FirstHour): string {
  const takes = (name: string) => {
    const part = parts.find((found) => found.name === name);
    if (!part) return 'not measured';
    const isGood = GOOD_LAST_LINE.test(part.result);
    return isGood ? duration(part.seconds) : `failed after ${duration(part.seconds)} in the last measurement`;
  };
  return [
    table(
      ['command', 'takes'],
      FIRST_COMMANDS.map(([name, title]) => [title, takes(name)]),
    ),
    '',
    `Measured on ${machine.cores} cores without an image registry, load average ${machine.load.toFixed(1)} ([step by step](docs/benchmarks/first-hour.md)).`,
  ].join('\n');
}

/** Table and text of README.md. */
export function besidePeers(faults: Faults, fleet: Fleet, drain: Drain): string {
  const bound = whole(pointOf(fleet, 'corelane', LOAD)?.bound.p99 ?? Number.NaN);
  const unstarted = ({ outcome }: Faults['results'][number]) => whole(outcome.failedUnstarted);
  const measured = table(
    ['', ...HEADS],
    [
      [`p99 of a fleet at a load of ${LOAD}, ms (a perfect queue: ${bound})`, ...ofFleet(fleet)],
      ['requests lost before a worker began them, a worker killed each second', ...ofFaults(faults, 'kill', unstarted)],
      ['the same, all workers killed at once', ...ofFaults(faults, 'kill-all', unstarted)],
      ['the same, all workers restarted in turn', ...ofFaults(faults, 'restart', unstarted)],
      [
        's until a worker in an endless loop serves again',
        ...ofFaults(faults, 'runaway', ({ runawayMs }) => seconds(runawayMs)),
      ],
      ['p99 beside 50 slow clients, ms', ...ofFaults(faults, 'slow', ({ outcome }) => whole(outcome.latency.p99))],
      [
        'p99 without faults, 13 clients, ms',
        ...ofFaults(faults, 'normal-13', ({ outcome }) => whole(outcome.latency.p99)),
      ],
      ['what the proxies add to a request, ms', ...ofTheWay(faults)],
    ],
  );
  return [
    measured,
    '',
    'Where no worker listens, nginx answers with an error at once and its clients ask again at once, so it has far more lost requests.',
    '',
    ...onKind(drain),
  ].join('\n');
}

/** p99 over load, for the page about it. */
export function overLoad(fleet: Fleet): string {
  const loads = [...new Set(fleet.points.filter(({ workersPerPod }) => workersPerPod > 1).map(({ load }) => load))];
  return table(
    ['load', 'one queue over all workers (bound)', 'Corelane', 'Node cluster in each pod', "Knative's queue-proxy"],
    loads
      .sort()
      .map((load) => [
        String(load),
        whole(pointOf(fleet, 'corelane', load)?.bound.p99 ?? Number.NaN),
        ...['corelane', 'cluster', 'queue-proxy'].map((system) =>
          whole(pointOf(fleet, system, load)?.latency.p99 ?? Number.NaN),
        ),
      ]),
  );
}
