/** Spans of which nobody hears, or too many a second: how many is a rate. */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { figure, NOBODY, SAMPLED } from './spans.ts';

describe('it costs nobody anything', () => {
  test('that nobody hears it', async () => {
    const deaf = await Pod.start({ workersPerPod: 1, ...NOBODY }, { workers: false });
    try {
      await until('nobody has heard', async () => {
        const { status } = await deaf.get('/', { headers: { ...SAMPLED, host: 'no host' } });
        expect(status).toBe(400);
        return (await figure(deaf, 'corelane_span_records_total{result="untold"}')) > 0;
      });
    } finally {
      await deaf.stop();
    }
  });

  test('that all are sampled: of so many a second it is told', async () => {
    const edit = (_file: string, text: string) => text.replace('corelane_spans_max 200', 'corelane_spans_max 1');
    const busy = await Pod.start({ workersPerPod: 1, ...NOBODY }, { edit });
    try {
      await until('there are too many', async () => {
        await Promise.all(Array.from({ length: 4 }, () => busy.get('/?id=busy', { headers: SAMPLED })));
        return (await figure(busy, 'corelane_span_records_total{result="limited"}')) > 0;
      });
      expect(await figure(busy, 'corelane_span_records_total{result="told"}')).toBeGreaterThan(0);
    } finally {
      await busy.stop();
    }
  });
});
