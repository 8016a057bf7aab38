/** A worker whose port is open, but which is not warm yet, gets nothing: whoever is started again meanwhile. */
import { logs } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';

const WORKERS = 4;
let pod: Pod;
beforeEach(async () => {
  const warmup = { path: '/?hold=1&id=warm', requests: 1 };
  pod = await Pod.start({ workersPerPod: WORKERS, queue: { timeout: '60s' }, warmup }, { workers: false });
  await pod.startWorkers();
  await allWarmUp();
});
afterEach(() => pod?.stop());

const allWarmUp = () => until('all warm up', () => pod.events({ event: 'begin', id: 'warm' }).length === WORKERS);

/** Both checks of every worker have come to an end: its port is open, its supervisor says "down". */
async function allChecked(): Promise<boolean> {
  const text = (await pod.runtimeApi('show stat')).trimEnd();
  const [names = [], ...rows] = text.split('\n').map((line) => line.split(','));
  const value = (row: string[], name: string) => row[names.indexOf(name)];
  const workers = rows.filter((row) => row[0] === 'workers' && row[1]?.startsWith('worker-'));
  // A check that goes on has "* " before what the last one found.
  const has = (row: string[], name: string, found: string) => value(row, name)?.endsWith(found);
  const checked = workers.filter((row) => has(row, 'check_status', 'L4OK') && has(row, 'agent_status', 'L7STS'));
  return checked.length === WORKERS;
}

const timesUp = async () => (await logs(pod.haproxy)).match(/Server workers\/worker-[0-9] is UP/g)?.length ?? 0;

test('HAProxy, when it begins and when it is started again', async () => {
  await until('HAProxy knows all workers', allChecked);
  expect(await timesUp()).toBe(0);
  await pod.killProxy(pod.haproxy, 'haproxy');
  const early = pod.get('/?id=early');
  await until('HAProxy knows all workers again', () => allChecked().catch(() => false));
  expect(await timesUp()).toBe(0);
  expect(pod.events({ id: 'early' })).toEqual([]);
  pod.release('warm');
  expect((await early).status).toBe(200);
});
