/** Which renders seem to wait for a child process that asks the site. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { jest } from '@jest/globals';

const require = createRequire(import.meta.url);
const { ChildProcess: Prototype } = require('node:child_process');
const { spawn: original } = Prototype.prototype;
const { ChildWaits } = require('../../runtime/child-waits.cjs') as {
  ChildWaits: new (metrics: object) => { look(render: object): void };
};

let laterMs = 0;
let child: ChildProcess | undefined;
const metrics = { idleMs: [0], childWaits: [0] };
let waits: { look(render: object): void };
beforeEach(() => {
  laterMs = 0;
  Object.assign(metrics, { idleMs: [0], childWaits: [0] });
  // A clock of the test's own: a busy core must not make its seconds longer.
  const began = performance.now();
  jest.spyOn(performance, 'now').mockImplementation(() => began + laterMs);
  jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  waits = new ChildWaits(metrics);
});
afterEach(() => {
  jest.restoreAllMocks();
  child?.kill('SIGKILL');
  Prototype.prototype.spawn = original;
});

/** Looks at the render for seconds, of which the event loop is idle for this part. */
function look(render: object, seconds: number, idleShare = 1): void {
  for (let second = 0; second <= seconds; second += 1) {
    waits.look(render);
    laterMs += 1_000;
    metrics.idleMs[0] = (metrics.idleMs[0] ?? 0) + idleShare * 1_000;
  }
}

function newRender(): { beganAt: number; response: { headersSent: boolean }; parts: Set<object> } {
  return { beganAt: performance.now(), response: { headersSent: false }, parts: new Set() };
}

test('one that has started a child, and waits beside it for 5 s: once', () => {
  const render = newRender();
  child = spawn('sleep', ['100']);
  look(render, 4);
  expect(metrics.childWaits).toEqual([0]);
  look(render, 30);
  expect(metrics.childWaits).toEqual([1]);
});

test('none that computes, has begun to answer, or has a child that is not its own and no browser', () => {
  const before = newRender();
  child = spawn('sleep', ['100']);
  laterMs += 1;
  const after = newRender();
  look(before, 20, 0.5);
  look(after, 20);
  before.response.headersSent = true;
  look(before, 20);
  expect(metrics.childWaits).toEqual([0]);
});

test('none whose child works', () => {
  const { cpuMs } = require('../../runtime/processes.cjs') as { cpuMs(pid: number): number };
  const render = newRender();
  child = spawn(process.execPath, ['-e', 'for (;;);']);
  const pid = child.pid ?? 0;
  const usedFor = (ms: number) => {
    const end = cpuMs(pid) + ms;
    while (cpuMs(pid) < end);
  };
  waits.look(render);
  usedFor(550);
  laterMs += 5_000;
  metrics.idleMs[0] = 7_000;
  waits.look(render);
  expect(metrics.childWaits).toEqual([0]);
});
