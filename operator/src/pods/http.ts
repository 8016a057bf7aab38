/** Plain HTTP to a port of a pod, by the pod's address: no Service, no API server in between. */
import { Agent, request } from 'undici';

/** A pod that does not answer by then is not asked again before the next round. */
const TIMEOUT_MS = 2_000;
/** 64 workers make 40 kB; nothing that a pod says may fill the operator's memory. */
const BYTES_MAX = 512 * 1024;

/** A connection for each request: the next one is a quarter of a minute away, and there may be 10,000 pods. */
const agent = new Agent({ pipelining: 0, connect: { timeout: TIMEOUT_MS }, maxResponseSize: BYTES_MAX });

/**
 * Body of a page of a pod.
 * @param address IPv4 or IPv6 address, as in status.podIP
 * @param signal ends it earlier
 * @throws Error when there is no answer within 2 s, or another than 200
 */
export async function getFromPod(address: string, port: number, path: string, signal?: AbortSignal): Promise<string> {
  const host = address.includes(':') ? `[${address}]` : address;
  const { statusCode, body } = await request(`http://${host}:${port}${path}`, {
    dispatcher: agent,
    signal: AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), ...(signal ? [signal] : [])]),
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`${path} answers ${statusCode}`);
  return text;
}
