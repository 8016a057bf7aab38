/** Files, folders, programs, pages and clients of strangers against `corelane run`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { replaceFile } from '../../../cli/replace-file.ts';
import { eachLine } from '../../../cli/run/each-line.ts';
import { inWords, supervisorLine } from '../../../cli/run/logs.ts';
import { Screen } from '../../../cli/run/screen.ts';
import { Watch } from '../../../cli/run/watch.ts';
import { loadFolder } from '../../../local/app-folder.ts';
import { Balancer } from '../../../local/balancer.ts';
import { containerArguments, environmentFile } from '../../../local/container.ts';
import { loadDocuments } from '../../../local/documents.ts';
import { Engine } from '../../../local/engine.ts';
import { hostOf, isMeantForUs } from '../../../local/host-header.ts';
import { request } from '../../../local/http.ts';
import { bareEnvironment } from '../../support/bare-environment.ts';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));

let folder: string;
const ends: (() => unknown)[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'corelane-hostile-'));
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  rmSync(folder, { recursive: true });
});

const resource = (container: string) =>
  `kind: RenderService\nmetadata: { name: a }\nspec: { template: { spec: { containers: [{ name: worker, ${container} }] } } }\n`;

describe('a file', () => {
  test('gets no capability that leads out of the container, and that is said', () => {
    const context =
      '{ privileged: true, procMount: Unmasked, capabilities: { add: [SYS_ADMIN, NET_BIND_SERVICE, ALL] } }';
    const { worker, leftOut } = loadDocuments(resource(`image: a, securityContext: ${context}`), { source: 'f' });
    expect(containerArguments(worker)).toEqual(['--cap-add', 'NET_BIND_SERVICE', 'a']);
    const path = 'spec.template.spec.containers[0].securityContext';
    expect(leftOut).toEqual([
      `${path}.privileged: it would be root on this machine`,
      `${path}.procMount: an engine has no such thing`,
      `${path}.capabilities.add (SYS_ADMIN): it may lead to root on this machine`,
      `${path}.capabilities.add (ALL): it may lead to root on this machine`,
    ]);
    const off = loadDocuments(resource('image: a, securityContext: { privileged: false }'), { source: 'f' });
    expect(off.leftOut).toEqual([]);
  });

  test('adds no option to the engine by its variables, command or arguments', () => {
    const env = '[{ name: A, value: "--privileged" }, { name: "--privileged", value: x }]';
    const container = `image: a, command: ["--privileged", "-v=/:/host"], args: ["--privileged"], env: ${env}`;
    const { worker } = loadDocuments(resource(container), { source: 'f' });
    const all = containerArguments(worker);
    const options = all.slice(0, all.indexOf('a'));
    expect(options).toEqual([
      ...['--env', 'A=--privileged', '--env', '--privileged=x'],
      ...['--entrypoint', '--privileged'],
    ]);
  });

  test('of many keys, or of many errors, is read, or refused, at once', () => {
    const keys = Array.from({ length: 100_000 }, (_unused, n) => `  k${n}: "1"`).join('\n');
    const file = `${resource('image: a')}---\nkind: ConfigMap\nmetadata: { name: c }\ndata:\n${keys}\n`;
    expect(loadDocuments(file, { source: 'f' }).name).toBe('a');
    expect(() => loadDocuments(`${file}  k7: "1"\n`, { source: 'f' })).toThrow('f is no YAML: Map keys must be unique');
    expect(() => loadDocuments(`${'!a '.repeat(200_000)}x`, { source: 'f' })).toThrow('f is no YAML: A node can have');
  });

  test('keys of a ConfigMap that are no names of variables are left out', () => {
    const file = `${resource('image: a, envFrom: [{ configMapRef: { name: c } }]')}---\nkind: ConfigMap\nmetadata: { name: c }\ndata: { "A=B": x, constructor: v, "a\\nb": z }\n`;
    const { worker, leftOut } = loadDocuments(file, { source: 'f' });
    expect(worker.env).toEqual([{ name: 'constructor', value: 'v' }]);
    expect(leftOut).toHaveLength(2);
  });
});

describe('variables', () => {
  test('go through a file, but for what cannot stand in a line of it', () => {
    const env = [
      { name: 'PASSWORD', value: 'x" $HOME # $$(A) ' },
      { name: 'TWICE', value: 'first' },
      { name: 'TWICE', value: '=second' },
      { name: 'LINES', value: 'a\nB=c $$(PASSWORD)' },
      { name: '#comment', value: 'x' },
      { name: 'HOST_PATH' },
      { name: 'LONG', value: 'x'.repeat(60_000) },
    ];
    const container = { name: 'worker', image: 'a', env };
    const { file, rest } = environmentFile(container);
    expect(file).toBe('PASSWORD=x" $HOME # $(A) \nTWICE==second\n');
    expect(containerArguments({ ...container, env: rest })).toEqual([
      ...['--env', 'LINES=a\nB=c $(PASSWORD)', '--env', '#comment=x', '--env', `LONG=${'x'.repeat(60_000)}`],
      'a',
    ]);
  });
});

describe('folders of this machine', () => {
  const engine = () => new Engine({ command: 'true', prefix: 'corelane.hostile' });

  test('what containers mount is for nobody else', () => {
    const own = engine().folder();
    ends.push(() => rmSync(own, { recursive: true }));
    expect(statSync(own).mode & 0o077).toBe(0);
  });

  test("a folder of another user is not removed as if it were a killed run's", async () => {
    if (process.getuid?.() !== 0) return; // whoever is not root cannot make one
    const stale = (name: string) => join(tmpdir(), `corelane.hostile-${hostname()}.4194303-0a1b2c-${name}`);
    for (const name of ['theirs', 'ours']) mkdirSync(stale(name));
    ends.push(() => rmSync(stale('theirs'), { recursive: true }));
    chownSync(stale('theirs'), 65_534, 65_534);
    await engine().removeStale();
    expect(['theirs', 'ours'].map((name) => existsSync(stale(name)))).toEqual([true, false]);
  });

  test('an engine that answers nothing any more keeps nothing here', async () => {
    const dead = new Engine({ command: 'false', prefix: 'corelane.hostile' });
    const own = dead.folder();
    await expect(dead.removeAll()).rejects.toThrow('false ps');
    expect(existsSync(own)).toBe(false);
  });

  test('an engine that hangs lets go when it is told a third time', async () => {
    const pids = join(folder, 'pids');
    const stub = `#!/bin/sh\n[ "$1" = version ] && { echo 1; exit; }\necho $$ >>${pids}\nexec /bin/sleep 60\n`;
    writeFileSync(join(folder, 'docker'), stub, { mode: 0o755 });
    writeFileSync(join(folder, 'a.yaml'), resource('image: a'));
    const env = bareEnvironment(folder, { CORELANE_RUN_DIR: folder, CORELANE_SIDECAR_IMAGE: 'a' });
    const args = [join(ROOT, 'operator/bin/corelane.mjs'), 'run', join(folder, 'a.yaml')];
    const run = spawn(process.execPath, args, { env });
    ends.push(() => {
      for (const pid of readFileSync(pids, 'utf8').trim().split('\n')) process.kill(Number(pid));
    });
    const ended = once(run, 'close');
    await once(run.stdout, 'data');
    const telling = setInterval(() => run.kill('SIGINT'), 100);
    expect(await ended).toEqual([1, null]);
    clearInterval(telling);
  });

  test('a profile is not written through a link', () => {
    const target = join(folder, 'bashrc');
    writeFileSync(target, 'mine');
    const file = join(folder, 'shop-1-worker-0.html');
    symlinkSync(target, file);
    replaceFile(file, 'a profile');
    replaceFile(file, 'the next');
    expect([readFileSync(target, 'utf8'), readFileSync(file, 'utf8')]).toEqual(['mine', 'the next']);
  });

  test.each(['package.json', 'renderservice.yaml'])('%s without an end is none', (name) => {
    writeFileSync(join(folder, 'server.js'), '');
    symlinkSync('/dev/zero', join(folder, name));
    expect(loadFolder(folder, 'node:24', { source: 'app' }).worker.command).toEqual(['node', 'server.js']);
  });

  test('a link to a folder elsewhere is not watched', async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), 'corelane-elsewhere-'));
    const seen: string[] = [];
    const changed = new PassThrough({ objectMode: true });
    const watch = new Watch(folder, (files) => {
      seen.push(...files);
      changed.write(files);
    });
    ends.push(
      () => watch.close(),
      () => rmSync(elsewhere, { recursive: true }),
    );
    symlinkSync(elsewhere, join(folder, 'link'));
    await once(changed, 'data');
    writeFileSync(join(elsewhere, 'theirs'), '');
    writeFileSync(join(folder, 'ours'), '');
    await once(changed, 'data');
    expect(seen).toEqual(['link', 'ours']);
  });
});

describe('a program', () => {
  test('that never ends a line fills no memory, and the next line is its own', async () => {
    const stream = new PassThrough();
    const lines: string[] = [];
    eachLine(stream, 5, (line) => lines.push(line));
    for (const part of ['ab', 'c\r\nde', 'fgh'.repeat(1_000), '\n\nx\ry\n', 'last']) stream.write(part);
    stream.end();
    await once(stream, 'end');
    expect(lines).toEqual(['abc', 'defgh', '', 'x', 'y', 'last']);
  });

  test('that writes what the supervisor writes ends nothing', () => {
    const line = (details: object) => JSON.stringify({ corelane: 'supervisor', ...details });
    for (const event of ['stalled', 'restart', 'kill', 'down', 'error']) {
      const odd = { toString: 1 };
      const found = supervisorLine(
        line({ event, in: odd, reason: odd, message: odd, code: odd, signal: odd, afterMs: [] }),
      );
      expect(() => found && inWords(found)).not.toThrow();
    }
    expect(supervisorLine(line({ event: { toString: 1 } }))).toBeUndefined();
    expect(supervisorLine(`{${line({}).slice(1)}x`)).toBeUndefined();
  });

  test('moves no cursor, wherever its words are shown', async () => {
    for (const isTTY of [true, false]) {
      const stream = new PassThrough();
      const screen = new Screen(
        Object.assign(stream, { isTTY, rows: 24, columns: 80 }) as unknown as NodeJS.WriteStream,
      );
      const acting = 'a\u001b]0;title\u0007\u001b[2J\u009b2J\u202eb \u001b[8mhidden';
      screen.line(`no such image: ${acting}`);
      screen.footer([acting]);
      screen.close();
      stream.end();
      const shown = (await text(stream)).replace('\r\u001b[J', '').replaceAll('\u001b[0m', '');
      expect(shown).toBe('no such image: a2Jb \u001b[8mhidden\n');
    }
  });

  test('that sends a page without an end fills no memory', async () => {
    const server = createServer((_request, response) => {
      const chunk = Buffer.alloc(1024 * 1024);
      let sent = 0;
      const more = () => {
        while (sent < 70) {
          sent += 1;
          if (!response.write(chunk)) return;
        }
        response.end();
      };
      response.on('drain', more);
      more();
    }).listen(0, '127.0.0.1');
    ends.push(() => server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await expect(request(port, '/page')).rejects.toThrow('/page: more than');
    await expect(request(port, '/page', { isForgotten: true })).resolves.toMatchObject({ status: 200, body: '' });
  });
});

describe('a page in the browser of the user (DNS rebinding)', () => {
  test.each([
    ['localhost:8080', true],
    ['LOCALHOST.', true],
    ['shop.localhost', true],
    ['127.0.0.1:8080', true],
    ['[::1]:8080', true],
    ['192.168.1.2', true],
    ['shop.test:80', true],
    ['host.docker.internal:8080', true],
    ['', true],
    ['evil.example', false],
    ['localhost.evil.example', false],
    ['127.0.0.1.evil.example', false],
    ['127.0.0.1@evil.example', false],
    ['evillocalhost', false],
    ['evil.example:localhost', false],
    ['shop.example.com', true],
    ['example.com', false],
    ['my.dev', true],
    ['not.my.dev', false],
  ])('Host %j: %j', (host, isMeant) => {
    expect(isMeantForUs(host, ['.example.com', 'My.dev'])).toBe(isMeant);
  });

  test('the Host is the first one, however it is written', () => {
    expect(hostOf('GET / HTTP/1.1\r\nhOST: \t evil.example \r\nHo')).toBe('evil.example');
    expect(hostOf('\r\n\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n')).toBe('evil.example');
    expect(hostOf('GET / HTTP/1.1\r\nX: Host: a\r\nHost: evil.ex')).toBeUndefined();
    expect(hostOf('GET / HTTP/1.1\nHost: evil.example\n\n')).toBe('evil.example');
    expect(hostOf('GET / HTTP/1.0\r\n\r\nHost: body')).toBe('');
  });

  /** What a balancer before a server says to these bytes, written one after the other. */
  async function answerTo(parts: string[], allowed: string[] = []): Promise<string> {
    const answer = (asked: IncomingMessage, response: ServerResponse) => void asked.pipe(response);
    const server = createServer({ maxHeaderSize: 128 * 1024 }, answer).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const balancer = new Balancer(() => [(server.address() as AddressInfo).port], allowed);
    const port = await balancer.listen(20_000 + Math.floor(10_000 * Math.random()));
    const client = net.connect({ port, host: '127.0.0.1', noDelay: true });
    client.on('error', () => {});
    ends.push(
      () => client.destroy(),
      () => balancer.close(),
      () => server.close(),
    );
    for (const part of parts) await new Promise((resolve) => client.write(part, resolve));
    return text(client);
  }

  const post = (host: string) => [
    ...`POST / HTTP/1.1\r\nHost: ${host}\r\n`,
    'Connection: close\r\nContent-Length: 5\r\n\r\n',
    'hel',
    'lo',
  ];

  test('gets nothing by its own name; by a name of this machine all bytes arrive', async () => {
    expect(await answerTo(post('localhost'))).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*hello/);
    const refused = await answerTo(post('evil.example:8080'));
    expect(refused).toMatch(
      /^HTTP\/1\.1 403 Forbidden\r\nX-Corelane-Error: host-not-allowed\r\n[\s\S]*the Host evil\.example:8080 is no name of this machine/,
    );
    expect(await answerTo(post('evil.example'), ['evil.example'])).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*hello/);
    expect(await answerTo(post('<script>'))).not.toContain('script');
  });

  test('while no pod is ready, the answer has that reason', async () => {
    const balancer = new Balancer(() => []);
    const port = await balancer.listen(20_000 + Math.floor(10_000 * Math.random()));
    const client = net.connect({ port, host: '127.0.0.1' });
    ends.push(
      () => client.destroy(),
      () => balancer.close(),
    );
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const refused = await text(client);
    expect(refused).toMatch(/^HTTP\/1\.1 503 [^\r]*\r\nX-Corelane-Error: no-worker\r\n/);
    expect(refused).toMatch(/\r\nRetry-After: 1\r\n[\s\S]*\r\n\r\ncorelane run: no pod is ready yet\n$/);
  });

  test('a head may be as large as a pod takes one, and a first line that never ends is refused', async () => {
    const large = `GET / HTTP/1.1\r\nX: ${'a'.repeat(100_000)}\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
    expect(await answerTo([large])).toMatch(/^HTTP\/1\.1 200 /);
    const refused = await answerTo(['GET /', 'a'.repeat(140_000)]);
    expect(refused).toMatch(/^HTTP\/1\.1 431 [^\r]*\r\nX-Corelane-Error: head-too-large\r\n/);
  });
});
