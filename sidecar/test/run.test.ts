/** `corelane run` with real containers: what it serves and says, and what it leaves behind. */
import net from 'node:net';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { App, RunProcess, textOf } from '../../e2e/harness/engine/run-process.ts';
import { FILES, failure, port, QUICK } from './run.ts';

let app: App | undefined;
afterEach(async () => {
  await RunProcess.endAll();
  app?.remove();
  app = undefined;
});

test('a RenderService and its image', async () => {
  const run = new RunProcess(['examples/storefront.yaml', '--port', await port(), '--env', 'PRODUCTS=3']);
  const url = await run.url();
  expect(await textOf(url)).toMatch(/^200 <!DOCTYPE html>/i);
  expect(run.output).toContain('a cluster would run 3 pods (spec.replicas), here it is 1 (--pods)');
  await run.says(/^storefront-1\/worker-1 \| storefront: listening on http:\/\/127\.0\.0\.1:9003$/m);
  expect(await run.leftovers()).not.toEqual([]);
  expect(await run.end('SIGINT')).toBe(0);
  expect(await run.leftovers()).toEqual([]);
});

describe('what keeps it from starting is said, and nothing is left', () => {
  test('an image that is not there', async () => {
    app = new App({ 'shop.yaml': QUICK.replace('replaced', 'localhost:1/nowhere:none') });
    const { said } = await failure([`${app.folder}/shop.yaml`]);
    expect(said).toMatch(
      /^corelane: the image localhost:1\/nowhere:none is not there and cannot be pulled: .*\n {2}.*localhost:1/,
    );
  });

  test('no engine', async () => {
    const nowhere = { DOCKER_HOST: 'unix:///nowhere/docker.sock', CORELANE_RUN_DIR: '/nowhere' };
    const { said } = await failure(['examples/storefront.yaml', '--engine', 'docker'], nowhere);
    expect(said).toMatch(
      /^corelane: no container engine answers; corelane run needs docker\n {2}docker: .*\nStart it, or install it /,
    );
  });

  test('a file that cannot be used, before anything is started', async () => {
    app = new App({ 'shop.yaml': QUICK.replace('workersPerPod: 2', 'workersPerPod: 0') });
    const { before, said } = await failure([`${app.folder}/shop.yaml`]);
    expect(said).toMatch(/^corelane: .* cannot be used\n {2}spec\.workersPerPod: /);
    expect(before).not.toContain('image of');
  });
});

test('a folder whose file names no image, with a .env file; its port is for this machine only', async () => {
  app = new App({
    ...FILES,
    'renderservice.yaml': QUICK.replace(/^ +image: .*\n/m, ''),
    '.env': 'LEVEL="two $$\\nlines of $(PORT)" # not the one of the ConfigMap\n',
  });
  const run = new RunProcess([app.folder, '--port', await port(), '--env-file', `${app.folder}/.env`]);
  const url = await run.url();
  expect(JSON.parse((await textOf(url)).slice(4))).toMatchObject({ level: 'two $$\nlines of $(PORT)' });
  const { port: own } = new URL(url);
  const [address = ''] = (
    await docker('network', 'inspect', 'bridge', '--format', '{{range .IPAM.Config}}{{.Gateway}} {{end}}')
  ).split(' ');
  const refused = await new Promise((resolve) => {
    const socket = net.connect(Number(own), address, () => resolve('accepted'));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
  });
  expect(refused).toBe('ECONNREFUSED');
});

test('a page that asks the host that its client has asked for, by each way that leads to this machine', async () => {
  app = new App({
    'server.mjs': `
      import http from 'node:http';
      const byHttp = (url) => new Promise((resolve) => http.get(url, (answer) => answer.resume().on('end', () => resolve(answer.statusCode))).on('error', ({ code }) => resolve(code)));
      http.createServer(async ({ url, headers }, response) => {
        if (url === '/inner') return response.end('inner');
        const inner = 'http://' + headers.host + '/inner';
        const fetched = await fetch(inner).then((answer) => answer.text(), ({ cause }) => cause?.code);
        response.end(JSON.stringify([fetched, await byHttp(inner)]));
      }).listen(process.env.PORT);
    `,
  });
  const run = new RunProcess([app.folder, '--port', await port(), '--workers', '1']);
  const { port: own } = new URL(await run.url());
  for (const host of ['localhost', '127.0.0.1']) {
    // One worker: the inner request may not wait for the page that has sent it.
    const both = await Promise.all([1, 2].map(() => textOf(`http://${host}:${own}/`)));
    expect(both).toEqual(Array(2).fill('200 ["inner",200]'));
  }
});
