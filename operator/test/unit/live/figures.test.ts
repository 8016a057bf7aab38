/** What a pod tells of itself; any program may have written it. */
import { readFigures } from '../../../live/figures.ts';
import { NOW_MS } from './fleet.ts';

const HAPROXY = 'haproxy_server_status{proxy="workers",server="worker-0",state="UP"} 1\n';
const stallOf = async (seconds: string) => {
  const line = `corelane_worker_last_stall_timestamp_seconds{worker="0",in="render /app/a.js:3"} ${seconds}\n`;
  const page = (path: string) => Promise.resolve(path.startsWith('/metrics') ? HAPROXY : line);
  return (await readFigures(page, ['worker-0'], NOW_MS)).workers[0]?.lastStall;
};

test('when a worker was stuck last', async () => {
  expect(await stallOf(String(NOW_MS / 1000 - 60))).toEqual({ atMs: NOW_MS - 60_000, in: 'render /app/a.js:3' });
});

test.each(['1e300', 'Infinity', 'NaN', '-1', '0', '1e11', String(NOW_MS / 1000 + 86_400)])(
  'a time that is none (%s) is not known',
  async (seconds) => {
    expect(await stallOf(seconds)).toBeUndefined();
  },
);
