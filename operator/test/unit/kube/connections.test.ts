/** Connections to the API server: none waits behind another purpose's, and no write is sent without the lead. */
import type { ServerResponse } from 'node:http';
import { Rest } from '../../../src/kube/rest.ts';
import { eventually } from '../../support/eventually.ts';
import { clientOf, closeServers } from '../../support/scripted-server.ts';

afterEach(closeServers);

const CALLS_MAX = 32;
/** No call ends because the machine is busy. */
const PATIENT = { timeoutMs: 100_000 };
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/corelane/leases/corelane';

/** Requests that have come, and answers that are kept back. */
let seen: string[];
let held: ServerResponse[];
beforeEach(() => {
  [seen, held] = [[], []];
});

/** A client of a server that keeps back the answers to `held` requests, and says `{}` to others. */
function clientThatWaits(isHeld: (request: string) => boolean): Promise<Rest> {
  return clientOf((request, response) => {
    const text = `${request.method} ${request.url}`;
    seen.push(text);
    if (text.includes('watch=true')) response.flushHeaders();
    else if (isHeld(text)) held.push(response);
    else response.end('{}');
  });
}

test('the Lease waits neither for calls nor for watches, and calls do not wait for watches', async () => {
  const calls = await clientThatWaits((text) => text.startsWith('PATCH'));
  const lease = new Rest(calls.config, { purpose: 'lease' });
  const end = new AbortController();
  const watch = () => calls.stream('/api/v1/pods', { watch: 'true' }, end.signal);
  await Promise.all(Array.from({ length: 100 }, watch));
  const nudges = Array.from({ length: 2 * CALLS_MAX }, (_unused, index) =>
    calls.request('PATCH', `/api/v1/pods/${index}`, { ...PATIENT, body: {} }),
  );
  await eventually('all connections for calls are taken', () => expect(held).toHaveLength(CALLS_MAX));
  expect(await lease.request('GET', LEASE, PATIENT)).toEqual({});
  expect(await lease.request('PUT', LEASE, { ...PATIENT, body: {} })).toEqual({});
  expect(held).toHaveLength(CALLS_MAX);
  for (const response of held) response.end('{}');
  await eventually('those that waited are sent', () => expect(held).toHaveLength(2 * CALLS_MAX));
  for (const response of held.slice(CALLS_MAX)) response.end('{}');
  await Promise.all(nudges);
  end.abort();
});

test('a write that waits for a connection is not sent once the lead has gone', async () => {
  const { config } = await clientThatWaits((text) => text === 'GET /slow');
  let leadMs = PATIENT.timeoutMs;
  let asked = 0;
  const rest = new Rest(config, {
    writeMs() {
      asked += 1;
      return leadMs;
    },
  });
  const reads = Array.from({ length: CALLS_MAX }, () => rest.request('GET', '/slow', PATIENT));
  await eventually('all connections are taken', () => expect(held).toHaveLength(CALLS_MAX));
  const write = expect(rest.request('PATCH', '/late', { ...PATIENT, body: {} })).rejects.toThrow(
    'PATCH /late: this process no longer leads',
  );
  await eventually('it may write, and waits', () => expect(asked).toBeGreaterThan(0));
  leadMs = 0;
  for (const response of held) response.end('{}');
  await write;
  await Promise.all(reads);
  // The connections are as good as before.
  await Promise.all(reads.map(() => rest.request('GET', '/next', PATIENT)));
  expect(seen.filter((text) => text.startsWith('PATCH'))).toEqual([]);
});

test('a write may take for as long as this process leads, here and in the API server', async () => {
  const { config } = await clientThatWaits((text) => text.startsWith('PATCH /slow'));
  await new Rest(config, { writeMs: () => 12_345 }).request('PATCH', '/next', { ...PATIENT, body: {} });
  expect(seen).toEqual(['PATCH /next?timeout=12345ms']);
  const rest = new Rest(config, { writeMs: () => 50 });
  await expect(rest.request('PATCH', '/slow', { body: {} })).rejects.toThrow('no answer within 0.05 s');
});

test('before the lead is given up, writes under way are answered, and none begins', async () => {
  const rest = await clientThatWaits((text) => text === 'PATCH /slow');
  const write = rest.request('PATCH', '/slow', { ...PATIENT, body: {} });
  await eventually('it is under way', () => expect(held).toHaveLength(1));
  let hasEnded = false;
  const end = rest.endWrites('finish').then(() => {
    hasEnded = true;
  });
  await expect(rest.request('PATCH', '/next', { ...PATIENT, body: {} })).rejects.toThrow(
    'this process no longer leads',
  );
  expect(await rest.request('GET', '/read', PATIENT)).toEqual({});
  expect(hasEnded).toBe(false);
  held[0]?.end('{"is":"done"}');
  expect(await write).toEqual({ is: 'done' });
  await end;
  expect(seen).toEqual(['PATCH /slow', 'GET /read']);
});

test('when the lead is lost, writes under way are given up', async () => {
  const rest = await clientThatWaits(() => true);
  const write = expect(rest.request('PATCH', '/slow', { ...PATIENT, body: {} })).rejects.toThrow(
    'this process no longer leads',
  );
  await eventually('it is under way', () => expect(held).toHaveLength(1));
  await rest.endWrites('abort');
  await write;
  await eventually('its connection is closed', () => expect(held[0]?.destroyed).toBe(true));
});
