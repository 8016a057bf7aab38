/** Traces that requests are of, and what a worker and the access log have of them. */
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';

export const TRACE = '0af7651916cd43dd8448eb211c80319c';
export const SPAN = 'b7ad6b7169203331';
export const VALID = `00-${TRACE}-${SPAN}-01`;
export const NEW = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01$/;
export const STARTED = /^t=[0-9]{10}\.[0-9]{3}$/;

type Seen = Record<string, string | undefined>;

/** Headers that the worker got. */
export async function seen(
  pod: Pod,
  headers: Record<string, string | string[]> = {},
  path = '/?id=seen',
): Promise<Seen> {
  const { status, body } = await pod.get(path, { headers: headers as Record<string, string> });
  expect(status).toBe(200);
  return JSON.parse(body).headers;
}

/** What the access log has of a request. */
export async function logged(pod: Pod, id: string): Promise<unknown[]> {
  const line = await until(`${id} is logged`, async () =>
    (await pod.accessLog()).find(({ requestId }) => requestId === id),
  );
  return [line.traceparent, line.trace_id];
}
