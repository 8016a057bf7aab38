/** traceparent, tracestate and X-Request-Start: what a worker gets of them, and what the access log says. */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { AS_NGINX, handOver, identityOf, message, reserved } from './peer.ts';
import { rawConnection } from './raw.ts';
import { logged, NEW, SPAN, STARTED, seen, TRACE, VALID } from './tracing.ts';

/** None that anybody may go on with. */
const HOSTILE: [what: string, lines: string | string[]][] = [
  ['nothing in it', ''],
  ['version ff', `ff-${TRACE}-${SPAN}-01`],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['a parent of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['upper case', VALID.toUpperCase()],
  ['an upper case version', `0A-${TRACE}-${SPAN}-01`],
  ['a short trace', `00-${TRACE.slice(1)}-${SPAN}-01`],
  ['a long parent', `00-${TRACE}-${SPAN}0-01`],
  ['no flags', `00-${TRACE}-${SPAN}`],
  ['a flag that is no digit', `00-${TRACE}-${SPAN}-0g`],
  ['more after version 00', `${VALID}-more`],
  ['more without a dash after a later version', `01-${TRACE}-${SPAN}-01more`],
  ['7 kB', `01-${TRACE}-${SPAN}-01more${'x'.repeat(7_000)}`],
  ['quotes', `"},{"a":"\\${VALID}`],
  ['two of them', [VALID, `00-${'1'.repeat(32)}-${SPAN}-01`]],
  ['the same twice', [VALID, VALID]],
];

let passing: Pod;
let making: Pod;
let wary: Pod;
beforeAll(async () => {
  [passing, making, wary] = await Promise.all([
    Pod.start({ workersPerPod: 1 }, { revision: 'r1' }),
    Pod.start({ workersPerPod: 2, tracing: {} }),
    Pod.start({ workersPerPod: 1, forwarded: { trust: ['192.0.2.0/24'] }, tracing: { samplingPercent: 0 } }),
  ]);
});
afterAll(() => Promise.all([passing?.stop(), making?.stop(), wary?.stop()]));

describe('traceparent', () => {
  test.each([
    ['sampled', VALID, VALID],
    ['not sampled', `00-${TRACE}-${SPAN}-00`, `00-${TRACE}-${SPAN}-00`],
    ['flags that level 1 has not', `00-${TRACE}-${SPAN}-ff`, VALID],
    ['such flags, not sampled', `00-${TRACE}-${SPAN}-02`, `00-${TRACE}-${SPAN}-00`],
    ['a later version', `01-${TRACE}-${SPAN}-01`, VALID],
    ['a later version with more in it', `cc-${TRACE}-${SPAN}-01-what-"the-future"-will-be`, VALID],
  ])('a valid one goes on, as version 00: %s', async (what, sent, expected) => {
    const id = `valid-${what.replace(/[^a-z]/g, '-')}`;
    for (const pod of [passing, making, wary]) {
      const headers = { traceparent: sent, tracestate: 'acme=1,b@c=2', 'x-request-id': id };
      expect(await seen(pod, headers)).toMatchObject({ traceparent: expected, tracestate: 'acme=1,b@c=2' });
      expect(await logged(pod, id)).toEqual([expected, TRACE]);
    }
  });

  test.each(HOSTILE)('one that is none ends, and takes tracestate with it: %s', async (_what, traceparent) => {
    const headers = { traceparent, tracestate: 'acme=1' };
    const { traceparent: none, tracestate } = await seen(passing, headers);
    expect([none, tracestate]).toEqual([undefined, undefined]);
    const made = await seen(making, headers);
    expect([made.traceparent, made.tracestate]).toEqual([expect.stringMatching(NEW), undefined]);
    expect(made.traceparent).not.toContain(TRACE);
  });

  test('one of 10 kB is none, one of 40 kB is a head that is too large, as any other', async () => {
    const headers = { traceparent: 'x'.repeat(40_000) };
    expect((await passing.get('/?id=large', { headers })).status).toBe(431);
    expect((await seen(passing, { traceparent: 'x'.repeat(10_000) })).traceparent).toBeUndefined();
    expect((await seen(passing, { traceparent: VALID })).traceparent).toBe(VALID);
  });

  test('without one, and without spec.tracing, the program begins a trace of its own', async () => {
    const { traceparent, tracestate } = await seen(passing, { 'x-request-id': 'none', tracestate: 'acme=1' });
    expect([traceparent, tracestate]).toEqual([undefined, undefined]);
    expect(await logged(passing, 'none')).toEqual(['', '']);
  });

  test('with spec.tracing each request without one gets its own, which is in the log', async () => {
    const made = [];
    for (const id of ['new-1', 'new-2', 'new-3']) {
      const { traceparent = '', ...headers } = await seen(making, { 'x-request-id': id, tracestate: 'acme=1' });
      expect(traceparent).toMatch(NEW);
      expect(headers.tracestate).toBeUndefined();
      // That one names the request for HAProxy and supervisors.
      expect(traceparent).not.toContain(headers['x-corelane-request']);
      expect(await logged(making, id)).toEqual([traceparent, traceparent.slice(3, 35)]);
      made.push(...traceparent.split('-').slice(1, 3));
    }
    expect(new Set(made).size).toBe(6);
  });

  test('a second try is of the same trace, and came at the same time', async () => {
    const answer = making.get('/?hold=1&id=tries', { headers: { 'x-request-id': 'tries' } });
    const { worker } = await making.begun('tries');
    await making.kill(worker, making.server(worker), 'KILL');
    await until('it is begun again', () => making.events({ event: 'begin', id: 'tries' }).length === 2);
    making.release('tries');
    const headers = JSON.parse((await answer).body).headers;
    expect(headers.traceparent).toMatch(NEW);
    expect(await logged(making, 'tries')).toEqual([headers.traceparent, headers.traceparent.slice(3, 35)]);
    const before = making.events({ event: 'begin', id: 'tries' })[0]?.at ?? 0;
    expect(Number(headers['x-request-start'].slice(2)) * 1_000).toBeLessThanOrEqual(before);
  });

  test('samplingPercent 0 marks no new trace', async () => {
    expect((await seen(wary)).traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  });
});

describe('tracestate', () => {
  const most = `a=${'x'.repeat(510)}`;
  test.each([
    ['512 bytes', most, most],
    ['more', `${most}x`, undefined],
    ['two headers', ['a=1', 'b=2'], 'a=1, b=2'],
    ['two that are more together', [most, 'b=2'], undefined],
    ['bytes beyond ASCII', 'a=\xe9', undefined],
    ['a bar', 'a=|b|', 'a=|b|'],
  ])('%s', async (_what, tracestate, expected) => {
    const headers = await seen(passing, { traceparent: VALID, tracestate });
    expect([headers.traceparent, headers.tracestate]).toEqual([VALID, expected]);
  });
});

describe('X-Request-Start', () => {
  test.each([
    ['nginx', 't=1700000000.123', 't=1700000000.123'],
    ['nginx, without t=', '1700000000.123', 't=1700000000.123'],
    ['Heroku: milliseconds', '1700000000123', 't=1700000000.123'],
    ['Apache: microseconds', 't=1700000000123456', 't=1700000000.123'],
    ['seconds to the microsecond', 't=1700000000.123456', 't=1700000000.123'],
  ])('a trusted proxy knows better when it came: %s', async (_what, sent, expected) => {
    expect((await seen(passing, { 'x-request-start': sent }))['x-request-start']).toBe(expected);
  });

  test.each<[string, string | string[]]>([
    ['nothing', ''],
    ['letters', 't=soon'],
    ['seconds only', 't=1700000000'],
    ['a sign', 't=-1700000000.123'],
    ['nanoseconds', 't=1700000000123456789'],
    ['an exponent', 't=1e9'],
    ['two of them', ['t=1700000000.123', 't=1700000000.123']],
    ['quotes', '"},{"t":"1700000000.123'],
    ['7 kB', `t=${'1'.repeat(7_000)}`],
  ])('what is no time is not believed: %s', async (_what, sent) => {
    const before = Date.now();
    const started = (await seen(passing, { 'x-request-start': sent }))['x-request-start'] ?? '';
    expect(started).toMatch(STARTED);
    expect(Number(started.slice(2)) * 1_000).toBeGreaterThanOrEqual(before - 1);
  });

  test('of a stranger nothing is believed', async () => {
    const before = Date.now();
    const started = (await seen(wary, { 'x-request-start': 't=1700000000.123' }))['x-request-start'] ?? '';
    expect(started).toMatch(STARTED);
    expect(Number(started.slice(2)) * 1_000).toBeGreaterThanOrEqual(before - 1);
  });

  test('it is when the request came, however long its body and the queue take', async () => {
    const socket = await rawConnection(making.port(PORTS.http));
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    const lines = ['Host: a', 'Content-Length: 1', 'Expect: 100-continue', 'Connection: close'];
    socket.write(`POST /?id=slow HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    await until('its head is read', () => received.startsWith('HTTP/1.1 100 '));
    const later = (await seen(making, {}, '/?id=later&ms=20'))['x-request-start'] ?? '';
    socket.write('x');
    await until('all of it', () => socket.destroyed);
    const [, slow = ''] = /"x-request-start":"([^"]+)"/.exec(received) ?? [];
    expect([slow, later]).toEqual([expect.stringMatching(STARTED), expect.stringMatching(STARTED)]);
    expect(Number(slow.slice(2))).toBeLessThanOrEqual(Number(later.slice(2)));
  });
});

describe('other pods', () => {
  /** What a worker gets of a request that another pod hands over with these headers. */
  async function handedOver(headers: Record<string, string>): Promise<unknown[]> {
    const [ticket] = await reserved(passing, await identityOf(passing));
    const answer = await handOver(passing, ticket, message({ ...AS_NGINX, ...headers }, 'GET /?id=peer HTTP/1.1'));
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    const got = JSON.parse(/\{.*\}/.exec(answer)?.[0] ?? '{}').headers;
    return [got.traceparent, got.tracestate, got['x-request-start']];
  }
  const GOOD = { traceparent: VALID, tracestate: 'acme=1', 'X-Request-Start': 't=1700000000.123' };

  test('what a pod sends along goes on', async () => {
    expect(await handedOver(GOOD)).toEqual([VALID, 'acme=1', 't=1700000000.123']);
    expect(await handedOver({})).toEqual([undefined, undefined, undefined]);
  });

  test.each<[string, Record<string, string>, unknown[]]>([
    ['version ff', { traceparent: `ff-${TRACE}-${SPAN}-01` }, [undefined, undefined]],
    ['zeros', { traceparent: `00-${'0'.repeat(32)}-${SPAN}-01` }, [undefined, undefined]],
    ['a parent of zeros', { traceparent: `00-${TRACE}-${'0'.repeat(16)}-01` }, [undefined, undefined]],
    ['upper case', { traceparent: VALID.toUpperCase() }, [undefined, undefined]],
    ['10 kB', { traceparent: 'x'.repeat(10_000) }, [undefined, undefined]],
    ['two traces', { Traceparent: VALID }, [undefined, undefined]],
    ['too long a state', { tracestate: `a=${'x'.repeat(511)}` }, [VALID, undefined]],
    ['two states', { Tracestate: 'b=1' }, [VALID, undefined]],
  ])('no neighbour breaks a trace, and no request is lost by it: %s', async (_what, headers, expected) => {
    expect(await handedOver({ ...GOOD, ...headers })).toEqual([...expected, 't=1700000000.123']);
  });

  test.each<[string, Record<string, string>]>([
    ['letters', { 'X-Request-Start': 't=soon' }],
    ['10 kB', { 'X-Request-Start': `t=${'1'.repeat(10_000)}` }],
    ['two of them', { 'x-request-start': 't=1700000000.123' }],
  ])('nor a time: %s', async (_what, headers) => {
    expect(await handedOver({ ...GOOD, ...headers })).toEqual([VALID, 'acme=1', undefined]);
  });
});
