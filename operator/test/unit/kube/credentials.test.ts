/** Programs and files that give credentials, or do not: each failure says why, and ends with its cause. */
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { loadKubeConfig, PooledKubeConfig } from '../../../src/kube/config.ts';
import { requestContext } from '../../../src/kube/context.ts';
import { ExecCredentials } from '../../../src/kube/credentials.ts';
import { errorLine } from '../../../src/kube/error-line.ts';
import { ApiError, Rest } from '../../../src/kube/rest.ts';
import { eventually } from '../../support/eventually.ts';

const open: (() => unknown)[] = [];
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'credentials-'));
});

afterEach(async () => {
  for (const close of open.splice(0)) await close();
  await rm(folder, { recursive: true, force: true });
});

/** A program; it notes each start. */
async function program(body: string): Promise<string> {
  const path = join(folder, 'plugin');
  await writeFile(path, `#!/bin/sh\necho x >> ${join(folder, 'starts')}\n${body}\n`);
  await chmod(path, 0o700);
  return path;
}

const starts = async () => (await readFile(join(folder, 'starts'), 'utf8')).length / 2;

const printed = (status: unknown) => `printf '%s' '${JSON.stringify({ kind: 'ExecCredential', status })}'`;

/** What a program's credentials add to a request; without a pause between two starts unless given. */
function credentials(command: string, timeoutMs = 60_000, repeatMs = 0) {
  const all = new ExecCredentials({ timeoutMs, repeatMs });
  open.push(() => all.stop());
  return {
    all,
    async ask() {
      const target: { headers?: { Authorization?: string } } = {};
      await all.applyAuthentication({ name: 'user', exec: { command } }, target);
      return target.headers?.Authorization;
    },
  };
}

describe('a program', () => {
  test.each([
    ['ends with an error', 'echo "no session" >&2; exit 1', 'it ended with exit code 1: no session'],
    ['ends with an error and is silent', 'exit 3', 'it ended with exit code 3'],
    ['is killed', 'kill -KILL $$', 'it was ended by SIGKILL'],
    ['prints nothing', 'true', 'its output is not valid JSON'],
    ['prints its token alone', 'echo secret-token', 'its output is not valid JSON'],
    ['prints null', 'echo null', 'its output is no ExecCredential with a "status"'],
    ['prints another object', 'echo {}', 'its output is no ExecCredential with a "status"'],
    ['prints no token', printed({}), 'the "status" of its output has neither a token nor a certificate with its key'],
    [
      'prints a certificate without its key',
      printed({ clientCertificateData: 'x' }),
      'the "status" of its output has neither a token nor a certificate with its key',
    ],
    [
      'prints a time that is none',
      printed({ token: 'secret', expirationTimestamp: 'soon' }),
      'its expirationTimestamp is no time',
    ],
    ['prints without end', 'exec yes', 'it prints more than 1048576 bytes'],
  ])('that %s is an error without its output, and is asked again', async (_what, body, message) => {
    const plugin = credentials(await program(body));
    await expect(plugin.ask()).rejects.toThrow(new Error(message));
    await program(printed({ token: 'good' }));
    expect(await plugin.ask()).toBe('Bearer good');
  });

  test('that is not there is an error, and is asked again', async () => {
    const plugin = credentials(join(folder, 'plugin'));
    await expect(plugin.ask()).rejects.toThrow('ENOENT');
    await program(printed({ token: 'good' }));
    expect(await plugin.ask()).toBe('Bearer good');
  });

  test('that hangs is ended, whatever holds its output, and the next one may do better', async () => {
    const plugin = credentials(await program('sleep 20 & sleep 20'), 500);
    await expect(plugin.ask()).rejects.toThrow('it did not end within 0.5 s');
    await program(printed({ token: 'good' }));
    // On a busy machine any program may take that long.
    await eventually('the next one is asked', async () => expect(await plugin.ask()).toBe('Bearer good'));
  });

  test('that asks a question gets no answer', async () => {
    const plugin = credentials(await program(`read answer || ${printed({ token: 'unasked' })}`));
    expect(await plugin.ask()).toBe('Bearer unasked');
  });

  test('runs once for all calls that come meanwhile, and once for a token that does not expire', async () => {
    const plugin = credentials(await program(printed({ token: 'good' })));
    expect(await Promise.all([plugin.ask(), plugin.ask(), plugin.ask()])).toEqual(Array(3).fill('Bearer good'));
    expect(await plugin.ask()).toBe('Bearer good');
    expect(await starts()).toBe(1);
  });

  test('runs again for a token that has expired, or that the API server has refused', async () => {
    const expired = printed({ token: 'old', expirationTimestamp: '2000-01-01T00:00:00Z' });
    const plugin = credentials(await program(expired));
    expect(await plugin.ask()).toBe('Bearer old');
    await program(printed({ token: 'second' }));
    expect(await plugin.ask()).toBe('Bearer second');
    await program(printed({ token: 'third' }));
    expect(await plugin.ask()).toBe('Bearer second');
    plugin.all.forget();
    expect(await plugin.ask()).toBe('Bearer third');
  });

  test.each([
    ['fails', 'exit 1'],
    ['gives tokens that are refused', printed({ token: 'bad' })],
  ])('that %s is not started for each call', async (_what, body) => {
    const plugin = credentials(await program(body), 60_000, 3_600_000);
    for (let call = 0; call < 5; call += 1) {
      await plugin.ask().catch(() => {});
      plugin.all.forget();
    }
    expect(await starts()).toBe(1);
  });
});

describe('what a program is told in KUBERNETES_EXEC_INFO', () => {
  const apiVersion = 'client.authentication.k8s.io/v1beta1';

  async function told(exec: object): Promise<unknown> {
    const command = await program(`printf '%s' "$KUBERNETES_EXEC_INFO" > ${join(folder, 'info')}; exit 1`);
    const authority = join(folder, 'ca.crt');
    await writeFile(authority, 'PEM');
    const config = new PooledKubeConfig();
    open.push(() => config.close());
    const cluster = { name: 'test', server: 'https://127.0.0.1', caFile: authority, skipTLSVerify: false };
    config.loadFromClusterAndUser(cluster, { name: 'user', exec: { command, apiVersion, ...exec } });
    await expect(new Rest(config).request('GET', '/version')).rejects.toThrow('no credentials');
    return JSON.parse(await readFile(join(folder, 'info'), 'utf8'));
  }

  test('is the version in which it answers', async () => {
    const env = [{ name: 'KUBERNETES_EXEC_INFO', value: 'none' }];
    expect(await told({ env })).toEqual({ apiVersion, kind: 'ExecCredential', spec: { interactive: false } });
  });

  test('is the cluster where the kubeconfig says so', async () => {
    const cluster = { server: 'https://127.0.0.1', 'certificate-authority-data': btoa('PEM') };
    expect(await told({ provideClusterInfo: true })).toMatchObject({ spec: { interactive: false, cluster } });
  });
});

/** A client whose user is this one, and the tokens that a server gets from it; the server takes `accepted` only. */
async function clientOf(user: { exec?: object; authProvider?: object; token?: string }) {
  const server = { accepted: 'good', asked: [] as string[] };
  const listener: RequestListener = ({ headers: { authorization = 'none' } }, response) => {
    server.asked.push(authorization);
    response.writeHead(authorization === `Bearer ${server.accepted}` ? 200 : 401).end('{}');
  };
  const http = createServer(listener);
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const config = new PooledKubeConfig();
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  config.loadFromClusterAndUser({ name: 'test', server: url, skipTLSVerify: true }, { name: 'user', ...user });
  open.push(
    () => config.close(),
    () => http.close(),
    () => http.closeAllConnections(),
  );
  const rest = new Rest(config);
  return { server, config, ask: () => rest.request('GET', '/version').then(() => 'answered', errorLine) };
}

describe('a token file', () => {
  const clientOfFile = (tokenFile: string) => clientOf({ authProvider: { name: 'tokenFile', config: { tokenFile } } });

  test('that is away, empty, no file, or has no token in it is an error that names it, until it is mended', async () => {
    const path = join(folder, 'token');
    const { server, ask } = await clientOfFile(path);
    const prefix = `no credentials from the token file ${path}: `;
    expect(await ask()).toContain(`${prefix}ENOENT`);
    await writeFile(path, ' \n');
    expect(await ask()).toBe(`${prefix}the file is empty`);
    await writeFile(path, 'secret\ntoken\n');
    expect(await ask()).toBe(`${prefix}the token has characters that no header may have`);
    await rm(path);
    await mkdir(path);
    expect(await ask()).toContain(`${prefix}EISDIR`);
    // Nothing was asked without a token.
    expect(server.asked).toEqual([]);
    await rm(path, { recursive: true });
    await writeFile(path, 'good\n');
    expect(await ask()).toBe('answered');
  });

  test('whose token is replaced is read again as soon as the old one is refused', async () => {
    const path = join(folder, 'token');
    await writeFile(path, 'good');
    const { server, ask } = await clientOfFile(path);
    expect(await ask()).toBe('answered');
    await writeFile(path, 'better');
    expect(await ask()).toBe('answered');
    server.accepted = 'better';
    expect(await ask()).toContain('401');
    expect(await ask()).toBe('answered');
    expect(server.asked).toEqual(['Bearer good', 'Bearer good', 'Bearer good', 'Bearer better']);
  });
});

describe('a kubeconfig', () => {
  /** The configuration of a kubeconfig in a folder of its own, `shop`. */
  async function configOf(user: object, folders = ['shop']): Promise<PooledKubeConfig> {
    const paths = folders.map((name) => join(folder, name, 'config'));
    for (const [index, path] of paths.entries()) {
      await mkdir(join(path, '..'), { recursive: true });
      // The last one has it all; those before it have other names.
      const name = index === paths.length - 1 ? 'shop' : `other-${index}`;
      const text = {
        clusters: [{ name, cluster: { server: 'http://127.0.0.1:1', 'insecure-skip-tls-verify': true } }],
        users: [{ name, user }],
        contexts: [{ name, context: { cluster: name, user: name } }],
        'current-context': name,
      };
      await writeFile(path, JSON.stringify(text));
    }
    const before = process.env.KUBECONFIG;
    process.env.KUBECONFIG = paths.join(delimiter);
    open.push(() => {
      if (before === undefined) delete process.env.KUBECONFIG;
      else process.env.KUBECONFIG = before;
    });
    const config = loadKubeConfig();
    open.push(() => config.close());
    return config;
  }

  const authorization = async (config: PooledKubeConfig) =>
    (await requestContext(config, '/', {}, new AbortController().signal)).headers.Authorization;

  test.each([
    ['tokenFile', { tokenFile: 'token' }],
    ['token-file', { 'token-file': 'token' }],
    ['tokenFile beside a token', { tokenFile: 'token', token: 'older' }],
  ])('whose %s is not there yet is read all the same, and its file again and again', async (...[, user]) => {
    const config = await configOf(user);
    const path = join(folder, 'shop', 'token');
    await expect(authorization(config)).rejects.toThrow(`no credentials from the token file ${path}`);
    await writeFile(path, 'first\n');
    expect(await authorization(config)).toBe('Bearer first');
    await writeFile(path, 'second\n');
    config.forgetCredentials();
    expect(await authorization(config)).toBe('Bearer second');
  });

  test('whose tokenFile is absolute is that file', async () => {
    const path = join(folder, 'elsewhere');
    await writeFile(path, 'good');
    expect(await authorization(await configOf({ tokenFile: path }))).toBe('Bearer good');
  });

  test('that is the second of two is read as the first', async () => {
    const config = await configOf({ tokenFile: 'token' }, ['first', 'second']);
    await writeFile(join(folder, 'second', 'token'), 'good');
    expect(config.getCurrentContext()).toBe('shop');
    expect(await authorization(config)).toBe('Bearer good');
  });

  test('names a program by a path from its own folder', async () => {
    await program(printed({ token: 'good' }));
    expect(await authorization(await configOf({ exec: { command: '../plugin' } }))).toBe('Bearer good');
  });

  test('names a program of PATH by its name', async () => {
    const config = await configOf({ exec: { command: 'sh', args: ['-c', printed({ token: 'good' })] } });
    expect(await authorization(config)).toBe('Bearer good');
  });
});

test('an error names the program', async () => {
  const command = await program('exit 1');
  const { ask } = await clientOf({ exec: { command } });
  expect(await ask()).toBe(`no credentials from the kubeconfig's command "${command}": it ended with exit code 1`);
});

test('a token that ends with a line break is one all the same', async () => {
  const { ask } = await clientOf({ token: 'good\n' });
  expect(await ask()).toBe('answered');
});

test('an error does not show a token that no header may have', async () => {
  const { server, ask } = await clientOf({ token: 'secret\ntoken' });
  expect(await ask()).toBe('no credentials from the kubeconfig: the token has characters that no header may have');
  expect(server.asked).toEqual([]);
});

test.each([
  ['a certificate that is none', { clientCertificateData: 'x', clientKeyData: 'y' }],
  ['a token that no header may have', { token: 'secret\ntoken' }],
])('a program that has given %s is asked again', async (...[, status]) => {
  const command = await program(printed(status));
  const { ask } = await clientOf({ exec: { command } });
  expect(await ask()).toContain('no credentials from');
  await program(printed({ token: 'good' }));
  await eventually('it is asked', async () => expect(await ask()).toBe('answered'));
});

test('a watch that is refused asks for credentials anew, as calls do', async () => {
  const tokenFile = join(folder, 'token');
  await writeFile(tokenFile, 'old');
  const { config, ask } = await clientOf({ authProvider: { name: 'tokenFile', config: { tokenFile } } });
  const watch = new Rest(config).stream('/api/v1/pods', {}, new AbortController().signal);
  await expect(watch).rejects.toThrow(ApiError);
  await writeFile(tokenFile, 'good');
  expect(await ask()).toBe('answered');
});

test('a certificate that is replaced gets connections of its own', async () => {
  const config = new PooledKubeConfig();
  open.push(() => config.close());
  const userOf = (pem: string) => ({ name: 'user', certData: Buffer.from(pem).toString('base64') });
  const [one = '', other = ''] = rootCertificates;
  config.loadFromClusterAndUser({ name: 'test', server: 'https://127.0.0.1', skipTLSVerify: true }, userOf(one));
  const dispatcher = async () => (await requestContext(config, '/', {}, new AbortController().signal)).dispatcher;
  const first = await dispatcher();
  expect(await dispatcher()).toBe(first);
  config.users = [userOf(other)];
  expect(await dispatcher()).not.toBe(first);
});
