/**
 * Pages that are kept: how much of the disk they take, and how long they are good after HAProxy has stood still. A load
 * test: floods, a page of four seconds, and seconds of waiting.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { CACHE_MOUNT_PATH } from '../../operator/src/api/names.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { page, renders, seconds, statusOf } from './cache.ts';
import { inSteps, openStream, STREAMS, type Stream } from './stream.ts';

const HIT = 'Corelane; hit';

let pod: Pod;
let streams: Pod;
beforeAll(async () => {
  [pod, streams] = await Promise.all([
    Pod.start({ workersPerPod: 2, cache: { enabled: true } }),
    Pod.start({ workersPerPod: 2, cache: { enabled: true, maxSize: '8Mi' } }, STREAMS),
  ]);
});
afterAll(() => Promise.all([pod?.stop(), streams?.stop()]));

/** Kilobytes that pages take, and so many bytes that are still being sent of pages, be they there or gone. */
async function disk(): Promise<{ kept: number; open: number }> {
  const kept = await docker('exec', streams.nginx, 'du', '-sk', CACHE_MOUNT_PATH);
  const list = `for f in /proc/[0-9]*/fd/*; do case "$(readlink "$f")" in ${CACHE_MOUNT_PATH}/*) stat -L -c '%i %s' "$f";; esac; done | sort -u`;
  const files = (await docker('exec', streams.nginx, 'sh', '-c', list)).trim().split('\n');
  return {
    kept: Number(kept.split('\t')[0]),
    open: files.reduce((sum, line) => sum + Number(line.split(' ')[1] ?? 0), 0) / 1024,
  };
}
/** Of the volume. */
const DISK_KIB = 2 * 8 * 1024;

test('whoever asks for page after page does not fill the disk', async () => {
  const path = (n: number) => inSteps(`disk-${n}`, ['writes:90x10000'], '&header=Cache-Control:max-age=60');
  for (let n = 0; n < 40; n += 1) expect((await streams.get(path(n))).status).toBe(200);
  const { kept } = await disk();
  figure('cache on disk after 40 pages of 900 kB', kept / 1024, 'MiB', '< 16 MiB');
  expect(kept).toBeLessThan(DISK_KIB);
  // The last ones are there.
  expect(statusOf(await streams.get(path(39)))).toBe(HIT);
});

test('nor does who does not read them', async () => {
  const path = (n: number) => inSteps(`unread-${n}`, ['writes:100x10000'], '&header=Cache-Control:max-age=60');
  const unread: Stream[] = [];
  for (let n = 0; n < 30; n += 1) unread.push(await openStream(streams, path(n), { paused: true, direct: true }));
  await until(
    'all are rendered',
    () => streams.events({ event: 'end' }).filter(({ id }) => id?.startsWith('unread-')).length === 30,
  );
  const { kept, open } = await disk();
  figure('cache on disk with 30 clients that do not read', kept / 1024, 'MiB', '< 16 MiB');
  figure('open files of the cache with 30 clients that do not read', open / 1024, 'MiB', '< 16 MiB');
  expect([kept < DISK_KIB, open < DISK_KIB]).toEqual([true, true]);
  for (const stream of unread) stream.resume();
  expect(await Promise.all(unread.map(({ ended }) => ended))).toEqual(unread.map(() => true));
  expect(unread.map((stream) => stream.bytes())).toEqual(unread.map(() => 1_000_000));
});

test('a page is good for as long as it says, although HAProxy has stood still', async () => {
  // Its clock of Lua does not know that time has passed (nor does it know that the machine's clock was put right).
  await docker('pause', pod.haproxy);
  await seconds(5);
  await docker('unpause', pod.haproxy);
  await pod.get(page('stood-still', 'max-age=4'));
  expect(statusOf(await pod.get(page('stood-still', 'max-age=4')))).toBe(HIT);
  expect(renders(pod, 'stood-still')).toBe(1);
});
