/** The same commands for what `corelane run` runs on this machine: it takes two more pods. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, RunProcess, textOf } from '../../e2e/harness/engine/run-process.ts';
import { freePorts } from '../../operator/test/support/free-ports.ts';
import type { Terminal } from './terminal.ts';
import { onTerminal, type Size } from './top.ts';

const folder = mkdtempSync(join(tmpdir(), 'corelane-top-'));
const terminals: Terminal[] = [];
afterAll(() => {
  for (const terminal of terminals) terminal.kill();
  rmSync(folder, { recursive: true, force: true });
});

function start(args: string[], size: Size = {}): Terminal {
  const terminal = onTerminal(args, folder, size);
  terminals.push(terminal);
  return terminal;
}

test('of corelane run on this machine, without a cluster', async () => {
  const name = `look-${process.pid}`;
  const app = new App({
    'server.mjs': `
      import http from 'node:http';
      http.createServer((request, response) => setTimeout(() => response.end('page'), 700)).listen(process.env.PORT);`,
    'renderservice.yaml': `
apiVersion: corelane.dev/v1alpha1
kind: RenderService
metadata: { name: ${name} }
spec: { workersPerPod: 2, template: { spec: { containers: [{ name: worker, image: replaced }] } } }`,
  });
  try {
    const run = new RunProcess([app.folder, '--pods', '2', '--port', String((await freePorts(1))[0])]);
    const url = await run.url();
    const both = Promise.all([textOf(`${url}/a`), textOf(`${url}/b`)]);
    expect(await both).toEqual(['200 page', '200 page']);
    const top = start(['top', name, '--local', '--once'], { columns: 200, rows: 40 });
    expect(await top.ended).toBe(0);
    expect(top.output).toMatch(new RegExp(`^${name}: p99 .* 2 requests since the pods began\r$`, 'm'));
    expect(top.output.match(new RegExp(`^  ${name}-[12] +[01] +up `, 'gm'))).toHaveLength(4);
    const slow = start(['logs', name, '--local', '--slow'], { columns: 200, rows: 40 });
    expect(await slow.ended).toBe(0);
    expect(slow.output).toMatch(new RegExp(` ${name}-[12].*/worker-[01] +rendered.* +GET /b\r$`, 'm'));
    const said = start(['explain', name, '--local', '--for', '1s'], { columns: 200, rows: 40 });
    expect(await said.ended).toBe(0);
    expect(said.output).toMatch(/^Now: nothing limits it/m);
  } finally {
    await RunProcess.endAll();
    app.remove();
  }
  const none = start(['explain', name, '--local']);
  expect(await none.ended).toBe(1);
  expect(none.output).toMatch(new RegExp(`^corelane: corelane run has no service ${name} on this machine; `));
});
