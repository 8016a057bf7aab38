/**
 * API servers that fail while RenderServices come, change and go: the operator arrives where a fresh one would, writes
 * to nothing that it has no reason to write to, and writes nothing when it does not lead. `HOSTILE_SEED` repeats a run;
 * failing-api.load.test.ts has more rounds.
 */
import { mkdir, readFile, rename, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PooledKubeConfig } from '../../src/kube/config.ts';
import { LeaderElection } from '../../src/kube/lease.ts';
import { Rest } from '../../src/kube/rest.ts';
import { eventually, settled } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { podTemplate } from '../support/world.ts';
import { endHandOver, expectHandedOver, handOver } from './failing-handover.ts';
import {
  api,
  credential,
  end,
  plugin,
  prepare,
  REST,
  testRounds,
  throughPlugin,
  throughProxy,
  world,
} from './failing-rounds.ts';

const ROUNDS = 15;

describe('an API server that fails in many ways', () => {
  testRounds('failing', ROUNDS, ROUNDS);
});

describe('a watch that is late', () => {
  afterEach(end);

  test('what is written is not written again while the watch that would tell of it is late', async () => {
    await prepare('failing-late');
    const operator = await throughProxy('operator-0');
    await operator.untilReady();
    await operator.untilLeading();
    // Without pods nothing has to be seen of them.
    await world.createRenderService('shop', { ...REST, replicas: 0 });
    await world.untilApplied('shop');
    const first = (await world.deployment('shop')).metadata.name;
    api.holds = (_method, path) => path.includes('/deployments?') && path.includes('watch=true');
    api.cutWatches();
    await eventually('no watch tells of Deployments', () => expect(api.held.length).toBeGreaterThan(0));
    await world.patchSpec('shop', { template: podTemplate({ image: 'corelane.test/app:2' }) });
    const retired = async () =>
      (await world.get('Deployment', first)).metadata.annotations['corelane.dev/retired'] as string | undefined;
    const since = await eventually('the first revision is out of service', async () => {
      const time = await retired();
      expect(time).toBeDefined();
      return time;
    });
    // Times in objects are whole seconds: one that is written now is another one.
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    await world.patchSpec('shop', { service: { port: 8080 } });
    await eventually('it has worked on it again', async () =>
      expect((await world.get('RenderService', 'shop')).status.observedGeneration).toBe(3),
    );
    expect((await world.get('Service', 'shop')).spec.ports[0].port).toBe(8080);
    expect(await retired()).toBe(since);
  });
});

describe('a new leader', () => {
  afterEach(end);

  test('whose watch has not told it of a change yet does not take that back', async () => {
    await prepare('failing-stale');
    const leader = await world.startOperator('operator-a');
    await world.createRenderService('shop', { ...REST, replicas: 0 });
    await world.untilApplied('shop');
    const standby = await throughProxy('operator-b');
    await standby.untilReady();
    api.holds = (_method, path) => path.includes('/renderservices?') && path.includes('watch=true');
    api.cutWatches();
    await eventually('no watch tells it of RenderServices', () => expect(api.held.length).toBeGreaterThan(0));
    const template = podTemplate({ image: 'corelane.test/app:2' });
    const { metadata } = await world.patchSpec('shop', { template, service: { port: 8080 } });
    await world.untilApplied('shop');
    await settled('all objects', () => world.resourceVersions());
    const before = await world.deployments('shop');
    expect(before).toHaveLength(2);
    expect(await leader.stop()).toBe(0);
    await standby.untilLeading();
    await eventually('it has looked at it', async () => {
      const { done, depth } = await standby.work();
      expect([done > 0, depth]).toEqual([true, 0]);
    });
    expect(await world.deployments('shop')).toEqual(before);
    expect((await world.get('Service', 'shop')).spec.ports[0].port).toBe(8080);
    const { status } = await world.get('RenderService', 'shop');
    expect(status.observedGeneration).toBe(metadata.generation);
  });
});

describe('two operators, each behind an API server that fails', () => {
  afterEach(endHandOver);

  test('only the holder of the Lease writes while the lead goes from one operator to the other and back', async () => {
    expectHandedOver(await handOver('failing-handover', ['stopped', 'stopped']));
  });
});

describe('who leads', () => {
  afterEach(end);

  test('who has given the lease up does not lead', async () => {
    await prepare('failing-release');
    const config = new PooledKubeConfig();
    config.loadFromFile(api.kubeconfig);
    const election = new LeaderElection({
      rest: new Rest(config),
      namespace: world.namespace,
      name: 'corelane',
      identity: 'operator-a',
      signal: new AbortController().signal,
      onError: () => {},
    });
    expect(await election.acquire()).toBe(true);
    expect(election.writeMs).toBeGreaterThan(0);
    await election.release();
    expect([election.isCurrent, election.writeMs]).toEqual([false, 0]);
    expect((await world.get('Lease', 'corelane')).spec.holderIdentity).toBe('');
    await config.close();
  });
});

describe('credentials that fail', () => {
  afterEach(end);

  test.each([
    ['fails', 'echo "no session" >&2; exit 1', 'no session'],
    ['says something else', 'echo hello', 'is not valid JSON'],
    // The library would keep this for ever, and never ask again.
    ['gives no credentials', 'echo {}', 'its output is no ExecCredential'],
    ['is not there', undefined, 'ENOENT'],
  ])('an exec plugin that %s is an error, and is asked again', async (_what, body, said) => {
    await prepare(`failing-exec-${said.replaceAll(/\W+/g, '-').toLowerCase()}`);
    const good = `echo '${credential()}'`;
    const command = await plugin(good);
    const operator = await throughPlugin(command);
    await operator.untilReady();
    await operator.untilLeading();
    if (body === undefined) await rename(command, `${command}.away`);
    else await plugin(body);
    await eventually('it says so', () => expect(operator.log).toContain(said));
    expect(operator.log).toContain(`no credentials from the kubeconfig's command \\"${command}\\"`);
    await plugin(good);
    await world.createRenderService('shop');
    await world.untilApplied('shop');
    expect(operator.hasEnded).toBe(false);
  });

  /** A kubeconfig whose token is in `token` of the proxy's folder. */
  async function tokenFile(): Promise<{ path: string; kubeconfig: string }> {
    const path = join(api.folder, 'token');
    const user = { 'auth-provider': { name: 'file', config: { tokenFile: path } } };
    return { path, kubeconfig: await api.kubeconfigOf(user, 'file') };
  }

  test('an operator whose token file is away, empty or no file says so, is not ready, and works once it is mended', async () => {
    await prepare('failing-token');
    const { path, kubeconfig } = await tokenFile();
    const operator = await OperatorProcess.spawn({ ...world.settings('operator-0'), kubeconfig });
    const untilItSays = (cause: string) =>
      eventually(`it says ${cause}`, () =>
        expect(operator.log).toMatch(new RegExp(`no credentials from the token file ${path}: ${cause}`)),
      );
    await untilItSays('ENOENT');
    expect([await operator.status('/livez'), await operator.status('/readyz')]).toEqual([200, 503]);
    await writeFile(path, '');
    await untilItSays('the file is empty');
    await rename(path, `${path}.away`);
    await mkdir(path);
    await untilItSays('EISDIR');
    expect([await operator.status('/livez'), await operator.status('/readyz')]).toEqual([200, 503]);
    await rmdir(path);
    // Nothing was asked without a token.
    expect(api.came).toBe(0);
    await writeFile(`${path}.new`, `${api.user.token}\n`);
    await rename(`${path}.new`, path);
    await operator.untilReady();
    await operator.untilLeading();
    await world.createRenderService('shop');
    await world.untilApplied('shop');
    expect(operator.log).not.toMatch(/unhandled|uncaught/i);
  });

  test('a leader whose token is replaced, and whose old one is refused at once, goes on with the new one', async () => {
    await prepare('failing-token-new');
    const { path, kubeconfig } = await tokenFile();
    api.token = 'first';
    await writeFile(path, api.token);
    const operator = await OperatorProcess.spawn({ ...world.settings('operator-0'), kubeconfig });
    await operator.untilReady();
    await operator.untilLeading();
    await writeFile(`${path}.new`, 'second');
    await rename(`${path}.new`, path);
    api.token = 'second';
    api.cutWatches();
    await world.createRenderService('shop');
    await world.untilApplied('shop');
    expect(await operator.isLeading()).toBe(true);
    expect(operator.hasEnded).toBe(false);
  });

  test('an exec plugin that never ends is one program, and an error', async () => {
    await prepare('failing-plugin-hangs');
    const command = await plugin(`echo x >> ${join(api.folder, 'started')}; exec sleep 60`);
    const config = new PooledKubeConfig();
    config.loadFromFile(await api.kubeconfigOf({ exec: { command } }, 'exec'));
    const rest = new Rest(config);
    const calls = [1, 2, 3, 4].map(() => rest.request('GET', '/version', { timeoutMs: 5_000 }));
    for (const call of await Promise.allSettled(calls))
      expect(call).toMatchObject({
        status: 'rejected',
        reason: { message: `no credentials from the kubeconfig's command "${command}"` },
      });
    expect(await readFile(join(api.folder, 'started'), 'utf8')).toBe('x\n');
    await config.close();
  });
});
