/** Live settings of pods: they are put in place, and seen at work. */
import { type Answer, type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { withoutLive } from '../../operator/src/api/live.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpec, RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { renderServiceSpec } from '../../operator/src/api/validated-spec.ts';
import { type LiveConfig, liveSerial, renderLive } from '../../operator/src/render/live.ts';

export type Input = Partial<RenderServiceSpecInput>;

/** Status and reason. */
export const error = ({ status, headers }: Answer) => [status, headers['x-corelane-error']];
export const statuses = async (answers: Promise<Answer>[]) => (await Promise.all(answers)).map(({ status }) => status);

/** What is done to that pod, or another one. */
export function liveSettings(thePod: () => Pod) {
  /** Without what the pod can do, which no file says. */
  const live = async (there = thePod()) =>
    (await there.get('/live', { port: PORTS.stats })).body.replace(/^(canary|sticky)=1\n/gm, '');

  /** The live settings of a spec that the same pod could have. */
  function settingsOf(there: Pod, input: Input): LiveConfig {
    // Times that the input does not have are those of the pod.
    const { accessLog, template, queue, timeouts } = there.spec;
    const times = {
      queue: { timeout: queue.timeout, ...input.queue },
      timeouts: { render: timeouts.render, handler: timeouts.handler, ...input.timeouts },
    };
    const spec = renderServiceSpec.parse({ accessLog, template, ...input, ...times }) as RenderServiceSpec;
    expect(withoutLive(spec)).toEqual(withoutLive(there.spec));
    return renderLive(spec);
  }

  /** Puts other live settings in place, and waits until the pod has them. */
  async function change(input: Input, there = thePod()): Promise<void> {
    const settings = settingsOf(there, input);
    there.writeLive(settings);
    await until('it has them', async () => (await live(there)) === `serial=${liveSerial(settings)}\n`);
  }

  /** Requests that hold workers until they are released, all of them begun. */
  async function hold(ids: string[], there = thePod()) {
    const answers = ids.map((id) => there.get(`/?hold=1&id=${id}`));
    await Promise.all(ids.map((id) => there.begun(id)));
    return {
      async release() {
        there.release(...ids);
        expect(await statuses(answers)).toEqual(ids.map(() => 200));
      },
    };
  }

  return { live, settingsOf, change, hold };
}
