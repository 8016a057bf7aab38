/** Breakages of the port of the supervisor. */
import { type Mutant, REMOVED } from './mutant.ts';

export const runtimePort: Mutant[] = [
  {
    name: 'a URL is enough for a heap snapshot',
    breaks: 'runtime',
    file: 'routes.cjs',
    edits: [[/!OPEN_PAGES\.includes\(pathname\)/g, 'false']],
    caughtBy: 'runtime: a program that fetches what its clients name',
  },
  {
    name: 'a URL is enough to read what others have asked for',
    breaks: 'runtime',
    file: 'routes.cjs',
    edits: [[/'\/healthz', /g, "'/healthz', '/now', "]],
    caughtBy: 'runtime-port: a page that costs or tells something is not for who cannot set a header: what strangers',
  },
  {
    name: 'a request that has ended goes on being shown',
    breaks: 'runtime',
    file: 'concurrency-limiter.cjs',
    edits: [[/if \(place >= 0\) metrics\.begunAtMs\[place\] = 0;/g, REMOVED]],
    caughtBy: 'explain: saturated: all workers busy, two wait, one is refused',
  },
  {
    name: 'what an earlier request has asked for stays behind a shorter one',
    breaks: 'runtime',
    file: 'shared-metrics.cjs',
    edits: [[/if \(length < bytes\) buffer\[begin \+ length\] = 0;/g, REMOVED]],
    caughtBy: 'explain: saturated: all workers busy, two wait, one is refused',
  },
  {
    name: 'the header counts under any Host',
    breaks: 'runtime',
    file: 'head.cjs',
    edits: [[/ && HOST\.test\(host\[0\]\)/g, REMOVED]],
    caughtBy: 'runtime-port: a page that costs or tells something is not for who cannot set a header: the name',
  },
  {
    name: 'a URL with line breaks makes headers',
    breaks: 'runtime',
    file: 'head.cjs',
    edits: [[/!END_OF_REQUEST_LINE\.test\(header\[2\]\)/g, 'true']],
    caughtBy: 'runtime-port: a page that costs or tells something is not for who cannot set a header: line breaks',
  },
  {
    name: 'a worker is given back while V8 still works on its heap',
    breaks: 'I2',
    file: 'routes.cjs',
    edits: [
      [
        /return await (ask\(server\.pid, 'heap', .*\));/g,
        "await Promise.race([$1, new Promise((left) => socket.once('close', left))]);",
      ],
      [/worker\.undrain\(server\)/g, 'worker.undrain({})'],
    ],
    caughtBy: 'runtime-port: a heap snapshot whose client leaves while V8',
  },
  {
    name: 'nobody gives back a worker whose heap snapshot nobody wants any more',
    breaks: 'I2',
    file: 'routes.cjs',
    edits: [[/!socket\.destroyed && /g, REMOVED]],
    caughtBy: 'runtime-port: a heap snapshot whose client leaves before',
  },
  {
    name: 'half a heap snapshot looks like a whole one',
    breaks: 'runtime',
    file: 'health.cjs',
    edits: [[/if \(!\(await isWhole\)\) return stop\(\);/g, REMOVED]],
    caughtBy: 'runtime-port: a heap snapshot whose process dies',
  },
  {
    name: 'a profile goes on without its client',
    breaks: 'runtime',
    file: 'thread.cjs',
    edits: [[/endProfile\?\.\(\)/g, '0']],
    caughtBy: 'runtime-port: a profile whose client leaves',
  },
  {
    name: 'any number of connections to a supervisor',
    breaks: 'runtime',
    file: 'health.cjs',
    edits: [[/strangers\.size > STRANGERS_MAX/g, 'false']],
    caughtBy: 'runtime-port: many silent connections',
  },
  {
    name: 'a head of any length',
    breaks: 'runtime',
    file: 'health.cjs',
    edits: [[/if \(read\.length > .*\) refuse\(\);/g, REMOVED]],
    caughtBy: 'runtime-port: a header without end',
  },
  {
    name: 'a byte now and then keeps a connection',
    breaks: 'runtime',
    file: 'health.cjs',
    edits: [[/setTimeout\(\(\) => socket\.destroy\(\), HEAD_MS\)/g, 'setTimeout(() => {}, HEAD_MS)']],
    caughtBy: 'runtime-port: a connection that says something',
  },
  {
    name: 'anybody raises the limit of requests at a time beyond what there is',
    breaks: 'I1',
    file: 'health.cjs',
    edits: [[/Number\.isInteger\(limit\) && limit <= LIMIT_MAX/g, 'true']],
    caughtBy: 'runtime-port: what makes no sense',
  },
];
