/** Services for `corelane run`, and what it says of one that does not start. */
import { RunProcess } from '../../e2e/harness/engine/run-process.ts';
import { freePorts } from '../../operator/test/support/free-ports.ts';

/** A server whose page tells its text, worker and level. */
export const SERVER = `
  import http from 'node:http';
  import { text } from './text.mjs';
  const page = () => JSON.stringify({ text, worker: process.env.WORKER_INDEX, level: process.env.LEVEL });
  http.createServer((request, response) => setTimeout(() => response.end(page()), 5)).listen(process.env.PORT);
`;
/** A module whose change shows. */
export const TEXT = (text: string) => `export const text = '${text}';\n`;
/** A program in a folder. */
export const FILES = { 'server.mjs': SERVER, 'text.mjs': TEXT('one') };
/** A RenderService; the shortest times that there are make tests short. */
export const QUICK = `
apiVersion: v1
kind: ConfigMap
metadata: { name: settings }
data: { LEVEL: high }
---
apiVersion: corelane.dev/v1alpha1
kind: RenderService
metadata: { name: shop }
spec:
  workersPerPod: 2
  watchdog: { stallTimeout: 1s }
  drain: { delay: 1s }
  template:
    spec:
      containers:
        - name: worker
          image: replaced
          envFrom: [{ configMapRef: { name: settings } }]
`;

/** A free one. */
export const port = async () => String((await freePorts(1))[0]);

/** Runs what does not start; gives what it says, and what before that. Nothing may be left. */
export const failure = async (args: string[], env: Record<string, string | undefined> = {}) => {
  const run = new RunProcess([...args, '--port', await port(), '--quiet-logs'], env);
  expect(await run.end()).toBe(1);
  expect(await run.leftovers()).toEqual([]);
  const begin = run.output.indexOf('corelane: ');
  return { before: run.output.slice(0, begin), said: run.output.slice(begin) };
};
