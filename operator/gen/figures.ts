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

/** What the bench on a cluster came to: its last line has requests and how many were lost. */
function ofRollouts(summary: string): string {
  const [, requests = '', lost = ''] = /requests=(\d+) lost=(\d+)/.exec(summary) ?? [];
  return `${whole(Number(requests))} requests through rollouts, pod deletions, evictions, node drains and scaling on kind: ${lost} lost ([drain](docs/benchmarks/drain.md)).`;
}

/** Table and text of README.md. */
export function besidePeers(faults: Faults, fleet: Fleet, { summary }: { summary: string }): string {
  const bound = whole(pointOf(fleet, 'corelane', LOAD)?.bound.p99 ?? Number.NaN);
  const unstarted = ({ outcome }: Faults['results'][number]) => whole(outcome.failedUnstarted);
  const measured = table(
    ['', ...HEADS],
    [
      [`p99 of a fleet at a load of ${LOAD}, ms (a perfect queue: ${bound})`, ...ofFleet(fleet)],
      ['unbegun requests lost, a worker killed each second', ...ofFaults(faults, 'kill', unstarted)],
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
    'nginx refuses at once where no worker listens, and its clients ask again at once: hence its large numbers.',
    '',
    ofRollouts(summary),
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
