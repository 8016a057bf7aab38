/**
 * What the supervisor does on each version of Node.js, without containers: the files as they are, and without the
 * reaper, which is made with the image. The versions come as npm packages and are kept in the cache.
 */
import { execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { nodeBinary } from '../../e2e/harness/engine/node-versions.ts';
import { until } from '../../e2e/harness/engine/pod.ts';
import { freePorts } from '../../operator/test/support/free-ports.ts';
import { connecting, get, Program, RUNTIME } from './program.ts';
import { MEANT } from './runtime-port.ts';

const ESBUILD = fileURLToPath(new URL('../../node_modules/.bin/esbuild', import.meta.url));
const app = (name: string) => fileURLToPath(new URL(`apps/${name}`, import.meta.url));

/** One of the apps as people ship them: one minified file with a map beside it. */
async function bundle(name: string, folder: string): Promise<string> {
  const file = join(folder, 'bundle.cjs');
  const options = ['--bundle', '--minify', '--platform=node', '--format=cjs', '--sourcemap', `--outfile=${file}`];
  await promisify(execFile)(ESBUILD, [app(name), ...options]);
  return file;
}

/** The line that is marked with `// stuck: WORD`. */
function lineOf(file: string, word: string): number {
  return (
    readFileSync(file, 'utf8')
      .split('\n')
      .findIndex((line) => line.endsWith(`// stuck: ${word}`)) + 1
  );
}

/**
 * Declares the tests.
 * @param stallMs after so long without a sign a worker counts as stuck; else after 1.5 s, or 0.8
 */
export function testVersions(versions: string[], { stallMs }: { stallMs?: number } = {}): void {
  describe.each(versions)('Node.js %s', (version) => {
    let binary: string;
    let program: Program;
    beforeAll(async () => {
      binary = await nodeBinary(version);
    });
    beforeEach(() => {
      program = new Program(stallMs);
    });
    afterEach(() => program.stop());

    test('ES module: a stuck worker is killed, its helpers with it, and another one serves', async () => {
      await program.start(binary, ['--no-warnings', app('worker.mjs')], {
        NODE_OPTIONS: `--require ${app('preload.cjs')}`,
      });
      const first = await program.next(0);
      expect(first).not.toBe(program.process?.pid);
      // Preloaded in the worker, and there only.
      expect(program.events('preload').map(({ pid }) => pid)).toEqual([first]);
      const lost = get(program.port, '/?helper=1&ms=200&loop=1').catch(() => 'lost');
      expect(await lost).toBe('lost');
      await program.next(first);
      expect((await get(program.port, '/')).status).toBe(200);
      expect(program.output).toMatch(/"event":"stalled"[\s\S]*"event":"restart","reason":"stalled"/);
    });

    test("a script may put options before Corelane's: all count, and what they preload stays out of the supervisor", async () => {
      const bare = { env: { ...process.env, NODE_OPTIONS: '' } };
      const { stdout } = await promisify(execFile)(binary, ['-p', 'typeof process.execve'], bare);
      const beginsAnew = stdout.trim() === 'function';
      const [port] = await freePorts(1);
      await program.start(binary, [app('server.cjs')], {
        NODE_OPTIONS: `-r "${app('preload.cjs')}" --import ${app('preload.mjs')} --max_old_space_size=150 --require=${RUNTIME}`,
        CORELANE_NODE_FLAGS: '--max-old-space-size=600',
        // Two processes cannot have it.
        ...(beginsAnew && { PRELOAD_PORT: String(port) }),
      });
      const { pid, heapMib } = JSON.parse((await get(program.port, '/')).body);
      // V8 adds its young generation: 48 to 192 MiB.
      expect([heapMib >= 150, heapMib < 400]).toEqual([true, true]);
      const pids = (event: string) => program.events(event).map((one) => one.pid);
      expect([pids('preload'), pids('import')]).toEqual([[program.process?.pid, pid], [pid]]);
      expect(program.output.includes('so the supervisor has loaded it, too')).toBe(!beginsAnew);
    });

    test("below a launcher, too, a script may put the size of the heap before Corelane's", async () => {
      await program.start(binary, [app('script.cjs')], {
        SCRIPT: `NODE_OPTIONS="--max-old-space-size=150 $NODE_OPTIONS" exec "$NODE" "${app('server.cjs')}"`,
        CORELANE_NODE_FLAGS: '--max-old-space-size=600',
      });
      const { heapMib } = JSON.parse((await get(program.port, '/')).body);
      expect([heapMib >= 150, heapMib < 400]).toEqual([true, true]);
      expect(program.output).toContain('"event":"flags","leftOut":["--max-old-space-size"]');
      expect(program.output.match(/"event":"restart","reason":"\w+"/g)).toEqual([
        '"event":"restart","reason":"recycled"',
      ]);
    });

    test('a heap size of another kind takes the place of all that Corelane has', async () => {
      const sizes = '--max-old-space-size=600 --max-semi-space-size=32';
      const other = new Program(stallMs);
      const heapOf = async (one: Program, args: string[], flags: string) => {
        await one.start(binary, [...args, app('server.cjs')], { CORELANE_NODE_FLAGS: flags });
        return JSON.parse((await get(one.port, '/')).body).heapMib;
      };
      const bare = { env: { ...process.env, NODE_OPTIONS: '' } };
      const allows = "process.allowedNodeEnvironmentFlags.has('--max-heap-size')";
      const { stdout } = await promisify(execFile)(binary, ['-p', allows], bare);
      try {
        // V8 would let Corelane's go before it, and abort because of all three.
        expect(await heapOf(program, ['--max-heap-size=200'], sizes)).toBeLessThan(300);
        const mib = await heapOf(other, [], `${sizes} --max-heap-size=200`);
        // Where NODE_OPTIONS may not have it, it is left out, and Corelane's stay.
        expect([mib < 300, other.output.includes('"refused":["--max-heap-size=200"]')]).toEqual(
          stdout.trim() === 'true' ? [true, false] : [false, true],
        );
      } finally {
        await other.stop();
      }
    });

    test('options of a variable that may be missing are added to those of the program', async () => {
      // What kubelet leaves where there is none.
      const other = new Program(stallMs);
      const heapOf = async (one: Program, options: string) => {
        await one.start(binary, [app('server.cjs')], { CORELANE_USER_NODE_OPTIONS: options });
        return JSON.parse((await get(one.port, '/')).body).heapMib;
      };
      try {
        const [sized, unsized] = [
          await heapOf(program, '--max-old-space-size=150'),
          await heapOf(other, '$(NODE_OPTIONS)'),
        ];
        expect([sized >= 150, sized < 400, unsized > 400]).toEqual([true, true, true]);
      } finally {
        await other.stop();
      }
    });

    const major = Number(version.split('.')[0]);
    const model = [major < 22 ? '--experimental-permission' : '--permission', '--allow-fs-read=*'];
    const needed = ['--allow-child-process', ...(major < 25 ? [] : ['--allow-net'])];
    // Node.js has the model from 20 on.
    if (major >= 20)
      test("Node.js' permission model keeps the runtime out, or lets it in", async () => {
        const env = { HOSTNAME: '127.0.0.1' };
        const pidOf = async (one: Program) => JSON.parse((await get(one.port, '/')).body).pid;
        const missing = `Add ${needed.join(' ')}, or set runtime.instrument: false.\n`;
        await program.launch(binary, [...model, app('server.cjs')], env);
        await until('its log names what is missing', () => program.output.includes(missing));
        // From 25 on a server may need --allow-net itself.
        if (major < 25) {
          const served = await until(`it serves; ${program.output}`, () => pidOf(program).catch(() => undefined));
          expect(served).toBe(program.process?.pid);
        }
        const other = new Program(stallMs);
        try {
          await other.start(binary, [...model, ...needed, app('server.cjs')], env);
          expect(await pidOf(other)).not.toBe(other.process?.pid);
        } finally {
          await other.stop();
        }
      });

    test('the program waits until HAProxy has been told that it is down, 0.3 s at most', async () => {
      await program.launch(binary, [app('worker.mjs')]);
      let refusedAt = 0;
      await until('the supervisor listens', async () => {
        const at = performance.timeOrigin + performance.now();
        const isOpen = (await connecting(program.runtimePort)) === 'accepted';
        if (!isOpen) refusedAt = at;
        return isOpen;
      });
      // Nobody asks.
      const up = await until('it is up', () => program.events('up')[0]);
      expect(up.at - refusedAt).toBeGreaterThan(300);
    });

    test('CommonJS: main module, arguments, errors and exit codes', async () => {
      await program.start(binary, [app('server.cjs'), '--flag', 'a b']);
      expect(JSON.parse((await get(program.port, '/')).body)).toMatchObject({ main: true, argv: ['--flag', 'a b'] });
    });

    test('a stuck worker: what it was doing is known before it is killed, at its place in the sources', async () => {
      const file = await bundle('stuck.ts', program.folder);
      const source = app('stuck.ts');
      // One kind where the stall limit is long: the gate.
      const kinds = stallMs === undefined ? ['loop', 'microtasks', 'regex', 'child'] : ['loop'];
      const others = kinds.slice(1).map(() => new Program(stallMs));
      const stuck = async (one: Program, kind: string) => {
        await one.start(binary, [file], stallMs === undefined ? { CORELANE_STALL_TIMEOUT_MS: '800' } : {});
        const lost = get(one.port, `/${kind}`, { 'x-request-id': `id-${kind}` }).catch(() => 'lost');
        const stall = await until(`it is noticed: ${kind}; ${one.output}`, async () => {
          return JSON.parse((await get(one.runtimePort, '/stalls', MEANT)).body).stalls[0];
        });
        // A function that has just been entered is at its first line.
        const line = lineOf(source, kind);
        const places = [line, line - 1].map((each) => `${kind} ${source}:${each}`);
        expect(places).toContain(stall.in);
        expect(stall.requests).toEqual([`id-${kind}`]);
        expect(await lost).toBe('lost');
        await until('it serves again', async () => (await one.health()).status === 200);
      };
      try {
        // One after the other: each burns a core, and what it does must be found out within seconds.
        for (const [index, one] of [program, ...others].entries()) await stuck(one, kinds[index] as string);
      } finally {
        await Promise.all(others.map((one) => one.stop()));
      }
    });

    test('a program that asks its own port does so within its one render, and nobody else gets in beside it', async () => {
      await program.start(binary, ['--no-warnings', app('asks-itself.mjs')]);
      await program.allow(1);
      const page = (id: string, query = {}) => `/?${new URLSearchParams({ id, ...query })}`;
      const metric = async (name: string) => {
        const { body } = await get(program.runtimePort, '/metrics');
        return Number(new RegExp(`^corelane_worker_${name}\\{worker="0"\\} (\\d+)$`, 'm').exec(body)?.[1]);
      };
      for (const by of ['fetch', 'http']) {
        // The second one over the connection that the first one has kept.
        const [first, second] = [`${by}-1`, `${by}-2`];
        for (const id of [first, second]) {
          let body: string | undefined;
          get(program.port, page(id, { by, ask: page(`${id}-asked`) })).then(
            (answer) => (body = answer.body),
            () => {},
          );
          expect(await until(`${id} is answered`, () => body)).toBe(`${id}\n200 ${id}-asked`);
        }
      }
      const ids = (event: string) => program.events(event).map(({ id }) => id);
      const held = get(program.port, page('held', { by: 'fetch', ask: page('asked'), hold: 1 }));
      await until('the render has its answer', () => ids('end').includes('asked'));
      const stranger = get(program.port, page('stranger'));
      await until('another request waits', async () => (await metric('overlap_total')) === 1);
      expect(ids('begin')).not.toContain('stranger');
      program.release('held');
      expect([(await held).status, (await stranger).status]).toEqual([200, 200]);
      expect([await metric('own_requests_total'), await metric('requests_total')]).toEqual([5, 6]);
    });

    test('what a render sends to its own site has the mark of HAProxy, from the first request on, and nothing else has', async () => {
      const [echo] = await freePorts(1);
      await program.start(binary, ['--no-warnings', app('asks-itself.mjs')], { ECHO_PORT: String(echo) });
      await program.allow(1);
      const [site, mark] = [`127.0.0.1:${echo}`, 'ab'.repeat(16)];
      const ask = async (by: string, host: string, said: string) => {
        const path = `/?${new URLSearchParams({ id: by, by, at: site, ask: '/' })}`;
        const { body } = await get(program.port, path, { host, 'x-corelane-own-site': said, 'x-corelane-request': by });
        return /"X-Corelane-Own-Site","([^"]*)"/i.exec(body)?.[1];
      };
      // Before contexts are kept.
      expect(await ask('fetch', site, mark)).toBe(mark);
      for (const by of ['fetch', 'http', 'expect']) {
        const all = [
          ask(by, site, mark),
          ask(by, site, `1 ${mark}`),
          ask(by, 'shop.example', mark),
          ask(by, site, '2'),
        ];
        expect(await Promise.all(all)).toEqual([mark, mark, undefined, undefined]);
        expect(await ask(by, site, `${mark}, ${mark}`)).toBeUndefined();
      }
    });

    test('the port of a program that ends by itself is closed before its connections: nothing more is sent to it', async () => {
      const released = join(program.folder, 'released');
      await program.start(binary, [app('worker.mjs')], { EXITS_WITH: released, CORELANE_STALL_TIMEOUT_MS: '60000' });
      for (const [index, query] of ['exit=0', 'fault=throw'].entries()) {
        rmSync(released, { force: true });
        let isOpen = true;
        const lost = get(program.port, `/?${query}`).catch(() => 'lost');
        void lost.then(() => (isOpen = false));
        await until('its exit handlers run', () => program.events('exit').length > index);
        expect(await connecting(program.port)).toBe('ECONNREFUSED');
        expect(isOpen).toBe(true);
        writeFileSync(released, '');
        expect(await lost).toBe('lost');
        await until(
          'it serves again',
          async () => program.events('up').length > index + 1 && (await program.health()).status === 200,
        );
      }
    });

    test('a response on a kept connection is as long as it says', async () => {
      await program.start(binary, [app('worker.mjs')]);
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
      const first = await get(program.port, '/?length=10&more=too-much', {}, agent);
      const second = await get(program.port, '/?id=second', {}, agent);
      agent.destroy();
      expect(first.body).toBe('x'.repeat(10));
      expect(JSON.parse(second.body).id).toBe('second');
      const [before, after] = program.events('begin').map(({ port }) => port);
      expect(after).toBe(before);
    });

    test('a page has an ETag, and who has the page gets 304', async () => {
      await program.start(binary, [app('worker.mjs')], { CORELANE_ETAG: 'Auto' });
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
      const ask = (headers = {}) => get(program.port, '/?size=50000', headers, agent);
      const first = await ask();
      const tag = first.headers.etag ?? '';
      expect([first.status, tag, first.body.length]).toEqual([200, expect.stringMatching(/^W\/"[\w-]{32}"$/), 50_000]);
      const again = await ask({ 'if-none-match': tag });
      expect([again.status, again.headers.etag, again.body]).toEqual([304, tag, '']);
      // Over the same connection.
      expect(await ask()).toMatchObject({ status: 200, body: first.body });
      agent.destroy();
      expect(new Set(program.events('begin').map(({ port }) => port)).size).toBe(1);
    });

    test('a page in pieces has none, though its head may wait for the last one', async () => {
      await program.start(binary, [app('streams.mjs')], { CORELANE_ETAG: 'Auto' });
      for (const step of ['last:9', 'writes:1x9']) {
        const { status, headers } = await get(program.port, `/?step=${step}&header=Content-Type:text/html`, {
          'if-none-match': '*',
        });
        expect([status, headers.etag]).toEqual([200, undefined]);
      }
    });

    test('SIGTERM passes, and the exit code', async () => {
      await program.start(binary, [app('worker.mjs')], { EXIT_CODE: '42' });
      const ended = new Promise((resolve) => program.process?.once('exit', resolve));
      program.process?.kill('SIGTERM');
      expect(await ended).toBe(42);
      expect(program.events('sigterm')).toHaveLength(1);
    });

    test('a server in a thread is watched', async () => {
      await program.start(binary, [app('thread.cjs')]);
      const first = await program.next(0);
      get(program.port, '/?loop=1').catch(() => 0);
      await program.next(first);
      expect(program.output).toMatch(/"event":"stalled"/);
    });

    test('a script whose exit code somebody waits for ends once, with it', async () => {
      const env = {
        ...process.env,
        PORT: '1',
        CORELANE_RUNTIME_PORT: String((await freePorts(1))[0]),
        ONCE_EXIT_CODE: '5',
        NODE_OPTIONS: `--require=${RUNTIME}`,
      };
      const once = await promisify(execFile)(binary, [app('once.cjs'), 'x'], { env }).catch((error) => error);
      expect([once.code, once.stdout]).toEqual([5, 'once ["x"]\n']);
    });
  });
}
