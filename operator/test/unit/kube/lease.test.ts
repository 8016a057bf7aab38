/** Leader election: why a process can neither lead nor take over. api/leader tries who leads on a real API server. */
import type { RequestListener } from 'node:http';
import { LeaderElection } from '../../../src/kube/lease.ts';
import { eventually } from '../../support/eventually.ts';
import { clientOf, closeServers } from '../../support/scripted-server.ts';

let end: AbortController;
beforeEach(() => {
  end = new AbortController();
});
afterEach(async () => {
  end.abort();
  await closeServers();
});

/** Answers by method, in their order; the last one again and again. */
type Answers = Partial<Record<string, [status: number, body: object][]>>;

const NOT_FOUND: [number, object] = [404, { reason: 'NotFound', message: 'leases "corelane" not found' }];
const FORBIDDEN: [number, object] = [403, { reason: 'Forbidden', message: 'leases "corelane" is forbidden' }];
const OF_ANOTHER: [number, object] = [
  200,
  { metadata: { name: 'corelane' }, spec: { holderIdentity: 'b', leaseDurationSeconds: 15 } },
];

function answering(answers: Answers): RequestListener {
  return ({ method = '' }, response) => {
    const left = answers[method] ?? [];
    const [status, body] = (left.length > 1 ? left.shift() : left[0]) ?? [500, {}];
    response.writeHead(status).end(JSON.stringify(body));
  };
}

async function electionOn(answers: Answers): Promise<LeaderElection> {
  const rest = await clientOf(answering(answers));
  const identity = { namespace: 'corelane', name: 'corelane', identity: 'a' };
  return new LeaderElection({ rest, ...identity, signal: end.signal, onError: () => {} });
}

const FAILS = 'cannot read or write Lease corelane/corelane: ';

test('before it has asked nothing is known', async () => {
  const election = await electionOn({});
  expect(election.obstacle).toBe(`${FAILS}no answer yet`);
});

test.each<[string, Answers]>([
  ['read', { GET: [FORBIDDEN] }],
  ['make', { GET: [NOT_FOUND], POST: [FORBIDDEN] }],
])('a Lease that it may not %s is an obstacle', async (...[, answers]) => {
  const election = await electionOn(answers);
  void election.acquire();
  await eventually('it says why', () =>
    expect(election.obstacle).toContain(`${FAILS}leases "corelane" is forbidden (403 Forbidden)`),
  );
  expect([election.isCurrent, election.writeMs]).toEqual([false, 0]);
});

test('another leader is none', async () => {
  const election = await electionOn({ GET: [OF_ANOTHER] });
  void election.acquire();
  await eventually('it could take over', () => expect(election.obstacle).toBeUndefined());
  expect(election.isCurrent).toBe(false);
});

test('nor is a candidate that was faster', async () => {
  const election = await electionOn({ GET: [NOT_FOUND], POST: [[409, { reason: 'AlreadyExists' }]] });
  void election.acquire();
  await eventually('it could take over', () => expect(election.obstacle).toBeUndefined());
});

test('what failed once is none after a try that did not', async () => {
  const election = await electionOn({ GET: [FORBIDDEN, OF_ANOTHER] });
  void election.acquire();
  await eventually('it says why', () => expect(election.obstacle).toContain('is forbidden'));
  await eventually('it could take over', () => expect(election.obstacle).toBeUndefined());
});

test('a leader has none', async () => {
  const election = await electionOn({ GET: [NOT_FOUND], POST: [[201, {}]] });
  expect(await election.acquire()).toBe(true);
  expect(election.obstacle).toBeUndefined();
});
