/**
 * What a malicious program in a worker can do with /dev/shm (docs/security.md). In a cluster all containers of a pod
 * share one of 64 MiB; here each container has its own, of the same size.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';

const BYTES_MAX = 64 * 2 ** 20;

let pod: Pod;
let worker: string;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 1 });
  worker = pod.workers[0] as string;
});
afterAll(() => pod?.stop());

const shell = (container: string, command: string) => docker('exec', container, 'sh', '-c', command);

/** Bytes of shared memory that the kernel counts against the limit of the container. */
async function countedBytes(): Promise<number> {
  // Version 2 of cgroups, or 1.
  const files = '/sys/fs/cgroup/memory.stat /sys/fs/cgroup/memory/memory.stat';
  return Number(await shell(worker, `cat ${files} 2>/dev/null | sed -n 's/^shmem //p' | head -n 1`));
}

test('it has an end, and counts as memory of the container that fills it', async () => {
  const before = await countedBytes();
  const said = await shell(worker, 'dd if=/dev/zero of=/dev/shm/filled bs=1M 2>&1; stat -c %s /dev/shm/filled');
  expect(said).toContain('No space left on device');
  const bytes = Number(said.trim().split('\n').at(-1));
  expect(bytes).toBeLessThanOrEqual(BYTES_MAX);
  // Beside it are the journals of the worker's requests.
  expect(bytes).toBeGreaterThan(BYTES_MAX / 2);
  expect((await countedBytes()) - before).toBeGreaterThan(bytes / 2);
});

test.each(['haproxy', 'nginx'] as const)('%s keeps nothing in it', async (proxy) => {
  // Also files that have no name any more.
  const used = await shell(pod[proxy], 'ls -d /dev/shm/* 2>/dev/null; cat /proc/[0-9]*/maps 2>/dev/null; true');
  expect(used).toContain(`/usr/sbin/${proxy}`);
  expect(used).not.toContain('/dev/shm');
});

test('while it is full HAProxy starts again', async () => {
  const said = await shell(pod.haproxy, 'dd if=/dev/zero of=/dev/shm/filled bs=1M 2>&1; true');
  expect(said).toContain('No space left on device');
  await pod.killProxy(pod.haproxy, 'haproxy');
  await until('HAProxy serves', async () => (await pod.get('/?id=full-haproxy')).status === 200);
});

test('while it is full a worker starts again, and pages come', async () => {
  const lost = await pod.get('/?id=full-die&die=1', { method: 'POST' });
  expect(lost.status).toBe(502);
  await until('another process serves', async () => (await pod.get('/?id=full-again')).status === 200);
  // The journal of the new process has no room. What was begun is unknown then, so a POST gets no second try.
  expect((await pod.get('/?id=full-post', { method: 'POST', body: 'x' })).status).toBe(200);
});
