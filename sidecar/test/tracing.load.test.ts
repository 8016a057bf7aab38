/** Traces between pods, and by chance: each takes pods of its own. */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { Pod } from '../../e2e/harness/engine/pod.ts';
import { page } from './cache.ts';
import { logged, NEW, STARTED, seen, VALID } from './tracing.ts';

describe('traceparent', () => {
  test('samplingPercent marks some, and leaves alone those that come', async () => {
    const pod = await Pod.start({ workersPerPod: 1, tracing: { samplingPercent: 50 } });
    try {
      const flags = async (headers: Record<string, string>) => {
        const all = new Set<string | undefined>();
        for (let count = 0; count < 64; count += 1) all.add((await seen(pod, headers)).traceparent?.slice(-2));
        return [...all].sort();
      };
      expect(await flags({})).toEqual(['00', '01']);
      expect(await flags({ traceparent: VALID })).toEqual(['01']);
    } finally {
      await pod.stop();
    }
  });
});

describe('tracestate', () => {
  test('no page that others are given has what a stranger wrote', async () => {
    const keeping = await Pod.start({ workersPerPod: 1, cache: { enabled: true } });
    try {
      const headers = { traceparent: VALID, tracestate: 'acme=1', 'x-request-start': 't=1700000000.123' };
      const kept = await seen(keeping, headers, page('kept'));
      expect(kept).toMatchObject({ traceparent: VALID, 'x-request-start': 't=1700000000.123' });
      expect(kept.tracestate).toBeUndefined();
    } finally {
      await keeping.stop();
    }
  });
});

describe('other pods', () => {
  test('a trace goes along with what is handed over, and the log is where the client came', async () => {
    const fleet = await Fleet.start(2, { workersPerPod: 1, queue: { timeout: '60s' }, tracing: {} });
    try {
      const [home, other] = fleet.pods as [Pod, Pod];
      const first = home.get('/?hold=1&id=first');
      await home.begun('first');
      const headers = await seen(home, { 'x-request-id': 'away' }, '/?id=away');
      expect(other.events({ event: 'begin', id: 'away' })).toHaveLength(1);
      expect([headers.traceparent, headers['x-request-start']]).toEqual([
        expect.stringMatching(NEW),
        expect.stringMatching(STARTED),
      ]);
      expect(await logged(home, 'away')).toEqual([headers.traceparent, headers.traceparent?.slice(3, 35)]);
      fleet.release('first');
      expect((await first).status).toBe(200);
    } finally {
      await fleet.stop();
    }
  });
});
