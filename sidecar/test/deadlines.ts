/** Requests that say how long they are waited for, and the pod that they wait in. */
import { type Answer, type Call, type Pod, until } from '../../e2e/harness/engine/pod.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';

/** The header that the pod of these tests looks for. */
export const OWN = 'x-acme-timeout-ms';
/** With so many milliseconds to wait. */
export const within = (ms: number | string, call: Call = {}): Call => ({
  ...call,
  headers: { [OWN]: String(ms), ...call.headers },
});
/** Status and reason. */
export const error = ({ status, headers }: Answer) => [status, headers['x-corelane-error']];
/** What they are when the time is over. */
export const DEADLINE = [504, 'deadline'];

/** Of a pod whose clients say how long they wait. */
export const SPEC: Partial<RenderServiceSpecInput> = {
  workersPerPod: 1,
  queue: { timeout: '60s' },
  webSockets: { enabled: true },
  fallback: { html: '<p>shell' },
  deadlines: { header: 'X-Acme-Timeout-Ms' },
};

/** What is done to, and seen of, the only worker of a pod. */
export function waiting(thePod: () => Pod) {
  const begun = (id: string) => thePod().events({ event: 'begin', id });

  /** Keeps the only worker until the action is over. */
  async function whileBusy(id: string, action: () => Promise<void>): Promise<void> {
    const busy = thePod().get(`/?hold=1&id=${id}`);
    await thePod().begun(id);
    await action();
    expect(thePod().events({ event: 'end', id })).toEqual([]);
    thePod().release(id);
    expect((await busy).status).toBe(200);
  }

  /** A body of so many bytes, or in chunks, whose time is over when its turn comes. */
  async function answeredInTurn(length: number | undefined): Promise<void> {
    const body = 'x'.repeat(length ?? 10);
    const headers: Record<string, string> = length === undefined ? { 'transfer-encoding': 'chunked' } : {};
    let large: Promise<Answer> | undefined;
    await whileBusy(`large-busy-${length}`, async () => {
      const since = performance.now();
      large = thePod().get(`/?id=large-${length}`, within(300, { method: 'POST', body, headers }));
      await thePod().queued(1);
      await until('it has waited for too long', () => performance.now() - since > 600);
    });
    expect(error((await large) as Answer)).toEqual(DEADLINE);
    expect(begun(`large-${length}`)).toEqual([]);
  }

  return { begun, whileBusy, answeredInTurn };
}
