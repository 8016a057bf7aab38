/**
 * `corelane run` with real containers: what a change and each fault cost, under load; and starts that take many
 * containers, back-offs or a look at the right moment.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { NODE_IMAGE, SIDECAR_IMAGE } from '../../e2e/harness/engine/docker.ts';
import { until } from '../../e2e/harness/engine/pod.ts';
import { App, RunProcess, textOf } from '../../e2e/harness/engine/run-process.ts';
import { FILES, failure, port, QUICK, SERVER, TEXT } from './run.ts';

let app: App | undefined;
afterEach(async () => {
  await RunProcess.endAll();
  app?.remove();
  app = undefined;
});

test('what convert writes of Deployments is served', async () => {
  const golden = 'operator/test/unit/convert/golden';
  const names = readFileSync(`${golden}/runnable.txt`, 'utf8').trim().split('\n');
  const page = async (name: string) => {
    const run = new RunProcess([`${golden}/${name}.out.yaml`, '--port', await port(), '--env', 'PRODUCTS=3']);
    return `${name} ${await textOf(await run.url())}`;
  };
  // All at once: they wait for containers most of the time.
  const pages = await Promise.all(names.map(page));
  expect(pages).toEqual(
    names.map((name) => expect.stringMatching(new RegExp(`^${name} 200 <!doctype html>[^]*</html>$`, 'i'))),
  );
});

test('a folder: each fault costs its own request at most, and nobody else anything', async () => {
  app = new App({ ...FILES, 'renderservice.yaml': QUICK });
  const run = new RunProcess([app.folder, '--pods', '2', '--port', await port(), '--load', '20', '--chaos']);
  expect(JSON.parse((await textOf(await run.url())).slice(4))).toMatchObject({ text: 'one', level: 'high' });
  await run.says(/^drain shop-\d, a new pod comes .*$/m);
  await run.end('SIGTERM');
  const cost = (fault: string) => {
    const [, own, othersLost] = new RegExp(`^${fault} {2,}(\\S.*?) {2,}(\\d+) +[0-9.]+ s$`, 'm').exec(run.output) ?? [];
    if (!own) throw new Error(`nothing is told of "${fault}":\n${run.output.slice(-4_000)}`);
    return `${own}; others lost: ${othersLost}`;
  };
  const worker = 'worker-\\d of shop-\\d';
  expect({
    kill: cost(`kill -9 ${worker}`),
    exit: cost(`exit 0 in ${worker}`),
    loop: cost(`endless loop in ${worker}`),
    freeze: cost(`freeze ${worker}`),
    haproxy: cost('kill -9 HAProxy of shop-\\d'),
    nginx: cost('kill -9 nginx of shop-\\d'),
    drain: cost('drain shop-\\d, a new pod comes'),
  }).toEqual({
    kill: 'its page; others lost: 0',
    exit: 'its page; others lost: 0',
    loop: '502 worker-stuck; others lost: 0',
    freeze: 'its page; others lost: 0', // not begun
    haproxy: 'its page; others lost: 0',
    nginx: expect.stringMatching(/^(ECONNRESET.*|its page); others lost: 0$/), // whose connection it had
    drain: 'its page; others lost: 0',
  });
  expect(run.output).toMatch(/stuck in endlessLoop \/corelane-run\/faults\.cjs:6$/m);
  expect(await run.leftovers()).toEqual([]);
});

test('a change replaces one worker after the other, and no request is lost; a broken one leaves the others', async () => {
  app = new App(FILES);
  const run = new RunProcess([app.folder, '--port', await port(), '--load', '40', '--watch']);
  const url = await run.url();
  const pages = async () => {
    const texts = await Promise.all(Array.from({ length: 20 }, () => textOf(url)));
    return new Set(texts.map((text) => `${text.slice(0, 3)} ${JSON.parse(text.slice(4)).text}`));
  };
  // Both, so that there is a worker to take over.
  for (const worker of [0, 1]) await run.says(new RegExp(`/worker-${worker} \\* up$`, 'm'));
  app.write('text.mjs', TEXT('two'));
  await run.says(/^all workers run the change/m);
  expect(await pages()).toEqual(new Set(['200 two']));
  expect(run.output.match(/the program has ended .*/g)).toEqual(Array(2).fill(expect.stringContaining('(recycled,')));

  app.write('text.mjs', "export const text = 'three");
  await run.says(
    /^corelane: replacing the workers: worker-0 of \S+ does not start with the change:\n(.*\n)+? +SyntaxError/m,
  );
  expect(run.output).toContain('    file:///app/text.mjs:1\n');
  expect(await pages()).toEqual(new Set(['200 two']));

  const before = run.output.length;
  app.write('text.mjs', TEXT('four'));
  await until('the change is everywhere', () => run.output.slice(before).includes('all workers run the change'));
  expect(await pages()).toEqual(new Set(['200 four']));
  expect(await run.end('SIGINT')).toBe(0);
  expect(run.output).toMatch(/^load 40\/s: ok [1-9]\d+ failed 0 /m);
});

test('renders that wait for something else: the field to change is named while it lasts, and at the end', async () => {
  app = new App({ ...FILES, 'server.mjs': SERVER.replace('page()), 5)', 'page()), 300)') });
  const run = new RunProcess([app.folder, '--port', await port(), '--load', '20']);
  await run.says(/^workers are taken, but idle: .* Set concurrency: Auto$/m);
  const before = run.output.length;
  expect(await run.end('SIGINT')).toBe(0);
  expect(run.output.slice(before)).toMatch(/^load 20\/s: .*\nworkers are taken, but idle: /m);
});

test('assets: nginx has the files of the folder, and what has changed after a change', async () => {
  const resource = QUICK.replace(
    '  workersPerPod: 2',
    '  workersPerPod: 1\n  assets: [{ path: /static/, from: public }]',
  );
  app = new App({ ...FILES, 'renderservice.yaml': resource });
  app.write('public/a.txt', 'first');
  const run = new RunProcess([app.folder, '--port', await port(), '--watch']);
  const url = await run.url();
  const isServed = (text: string) => async () => (await textOf(`${url}/static/a.txt`)) === `200 ${text}`;
  expect(await isServed('first')()).toBe(true);
  expect(await textOf(`${url}/static/b.txt`)).toContain('"text":"one"'); // a worker's page
  app.write('public/a.txt', 'second');
  await until('nginx has the change', isServed('second'));
  expect(await run.end('SIGINT')).toBe(0);

  app.write('renderservice.yaml', resource.replace('from: public', 'from: build'));
  const wrong = new RunProcess([app.folder, '--port', await port()]);
  await wrong.says(/from "build" is no folder of the image \(looked in \/app\)/);
});

test('two at once on one port: the second takes the next; what a killed one has left the next one removes', async () => {
  app = new App(FILES);
  const wanted = await port();
  const first = new RunProcess([app.folder, '--port', wanted]);
  await first.url();
  const second = new RunProcess([app.folder, '--port', wanted]);
  const url = await second.url();
  expect(second.output).toContain(`port ${wanted} is taken by another program; it is ${new URL(url).port} instead`);
  expect(await textOf(`http://localhost:${wanted}`)).toMatch(/^200 /);
  expect(await textOf(url)).toMatch(/^200 /);

  await first.end('SIGKILL');
  expect(await first.leftovers()).not.toEqual([]);
  const third = new RunProcess([app.folder, '--port', wanted]);
  await third.url();
  expect(await first.leftovers()).toEqual([]);
  expect(await textOf(url)).toMatch(/^200 /);
  expect(await Promise.all([second.end('SIGTERM'), third.end('SIGHUP')])).toEqual([0, 0]);
  expect([...(await second.leftovers()), ...(await third.leftovers())]).toEqual([]);
});

test('stopped while it starts: nothing is left', async () => {
  app = new App(FILES);
  const run = new RunProcess([app.folder, '--pods', '3', '--port', await port()]);
  await until('the first container', async () => (await run.leftovers()).length > 3);
  expect([await run.end('SIGINT'), run.output]).toEqual([0, expect.anything()]);
  expect(await run.leftovers()).toEqual([]);
});

test('who reads its output goes: it ends as by Ctrl-C', async () => {
  app = new App({ ...FILES, 'server.mjs': `${SERVER}setInterval(() => console.log('something to read'), 100);` });
  const run = new RunProcess([app.folder, '--port', await port()]);
  await run.url();
  run.stopReading();
  expect(await run.end()).toBe(0);
  expect(await run.leftovers()).toEqual([]);
});

test('by a name that is not of this machine nobody is served; its variables are not in the list of processes', async () => {
  app = new App({ ...FILES, '.env': 'LEVEL=none of your business\n' });
  const run = new RunProcess([app.folder, '--port', await port(), '--env-file', `${app.folder}/.env`]);
  const options = () =>
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        } catch {
          return []; // it has ended
        }
      });
  let seen = '';
  const looking = setInterval(() => {
    seen += options().join('\n');
  }, 5);
  const url = new URL(await run.url());
  clearInterval(looking);
  expect(seen).toContain('worker-0.env');
  expect(seen).not.toContain('none of your business');
  expect(JSON.parse((await textOf(url.href)).slice(4))).toMatchObject({ level: 'none of your business' });
  const asked = http.get(url, { headers: { Host: `evil.example:${url.port}` } });
  const [answer] = (await once(asked, 'response')) as [http.IncomingMessage];
  expect([answer.statusCode, await text(answer)]).toEqual([403, expect.stringContaining('is no name of this machine')]);
});

describe('what keeps it from starting is said, and nothing is left', () => {
  test('a program that ends again and again', async () => {
    app = new App({
      'package.json': '{ "name": "shop" }',
      // To the same stream as the error: an engine reads two at its leisure.
      'server.js': "console.error('hello');\nthrow new Error('no database');",
    });
    const { said } = await failure([app.folder]);
    expect(said).toMatch(
      /^corelane: the program ends again and again before it listens on PORT; the last that worker-0 of shop-1 said:\n/,
    );
    expect(said).toContain('\n    hello\n');
    expect(said).toContain('\n    Error: no database\n');
    expect(said).not.toContain('node:internal');
  });

  test('a program that listens elsewhere', async () => {
    app = new App({
      'server.js': "require('node:http').createServer(() => {}).listen(3000 + Number(process.env.WORKER_INDEX));",
    });
    const { said } = await failure([app.folder]);
    expect(said).toMatch(
      /^corelane: the workers do not come up: nothing listens on PORT=900\d, but a server listens on 300\d; let it use process\.env\.PORT\n/,
    );
  });

  test('a container that ends again and again, with no supervisor in it', async () => {
    const command = '[node, --no-such-flag, server.js]';
    app = new App({
      'shop.yaml': QUICK.replace('image: replaced', `image: ${NODE_IMAGE}\n          command: ${command}`),
    });
    const { said } = await failure([`${app.folder}/shop.yaml`]);
    expect(said).toMatch(/^corelane: the program ends again and again before it listens on PORT; /);
    expect(said).toMatch(/\n {4}.*node: bad option: --no-such-flag\n/);
  });

  test('an image without Node.js', async () => {
    const resource = QUICK.replace('image: replaced', `image: ${SIDECAR_IMAGE}\n          command: [sleep, infinity]`);
    app = new App({ 'shop.yaml': resource });
    const { said } = await failure([`${app.folder}/shop.yaml`]);
    expect(said).toMatch(/^corelane: the image has no Node\.js that could be found/);
  });
});
