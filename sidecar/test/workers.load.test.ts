/** More workers that die at once than the gate has time for. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';

test('many workers are dead before HAProxy knows it: a request that meets one after the other is not lost', async () => {
  const many = await Pod.start({ workersPerPod: 6, queue: { timeout: '60s' } });
  try {
    for (let worker = 0; worker < 6; worker += 1) await until('up', () => many.isUp(worker));
    await docker('pause', many.haproxy);
    await docker('kill', '--signal', 'KILL', ...many.workers);
    const answer = many.get('/?id=unlucky', { method: 'POST', body: 'x' });
    await docker('unpause', many.haproxy);
    await docker('start', ...many.workers);
    expect((await answer).status).toBe(200);
  } finally {
    await many.stop();
  }
});
