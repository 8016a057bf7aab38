/** Fields on the worker processes: watchdog, runtime, warm-up. */
import { z } from 'zod';
import { duration, requestTarget, size } from '../scalars.ts';

const quarantine = z
  .strictObject({
    enabled: z.boolean().default(true).describe('Whether such URLs are answered 503 (X-Corelane-Error: poison).'),
    kills: z
      .int()
      .min(1)
      .max(100)
      .default(2)
      .describe(
        'So many workers of one pod must have been killed in requests for the URL: by one client, then it is refused for this one; or one each by so many clients, then it is refused for all. Never while the URL is answered more often than that.',
      ),
    window: duration({ min: '10s', max: '1h' }).default('1m').describe('The time in which kills are counted.'),
    duration: duration({ min: '10s', max: '1h' })
      .default('5m')
      .describe('How long the URL is refused. It is counted anew after that.'),
  })
  .prefault({})
  .describe(
    'Refuses URLs (Host, path and query of a GET or HEAD) whose requests get workers stuck. While a URL has no answer, at most `kills` of its requests are in workers at once; others wait, for queue.timeout at most.',
  );

export const watchdog = z
  .strictObject({
    stallTimeout: duration({ min: '500ms', max: '10m' })
      .optional()
      .describe(
        'How long the event loop of a worker may stand still before the worker is taken out, killed and started again. 10s unless given, or timeouts.render if that is shorter. It must be longer than your longest render without an await.',
      ),
    quarantine,
  })
  .prefault({})
  .describe('Finds workers that are stuck. Works with runtime.instrument only.');

/** Nothing that a shell or NODE_OPTIONS would split or quote. */
const NODE_FLAG = /^--[A-Za-z0-9][A-Za-z0-9_-]*(=[A-Za-z0-9._,:/@%+-]*)?$/;

const recycle = z
  .strictObject({
    requests: z.int().min(1).max(1_000_000_000).optional().describe('After so many requests (give or take 10 %).'),
    memory: size({ min: '32Mi', max: '1024Gi' })
      .optional()
      .describe('When the process has more resident memory than this.'),
    age: duration({ min: '1m', max: '8760h' }).optional().describe('After this time (give or take 10 %).'),
  })
  .prefault({})
  .describe(
    'When a worker process is replaced, between two requests: at whatever comes first, never unless given. Never two workers of a pod at the same time, and never so that less than half of them would be left.',
  );

export const runtime = z
  .strictObject({
    instrument: z
      .boolean()
      .default(true)
      .describe(
        'Whether a supervisor enters the workers through NODE_OPTIONS (docs/runtime.md says what it does, and what is lost without it). Images that are not Node.js are not affected.',
      ),
    nodeFlags: z
      .array(z.string().max(200).regex(NODE_FLAG, 'must be one flag of Node.js or V8, --name or --name=value'))
      .max(32)
      .default([])
      .describe(
        'Flags of Node.js or V8 for the workers, after those that follow from the memory limit and before NODE_OPTIONS of the template. One that NODE_OPTIONS does not allow is left out and logged.',
      ),
    threadPoolSize: z
      .int()
      .min(1)
      .max(1024)
      .optional()
      .describe('Threads of a worker for files, DNS, zlib and crypto (UV_THREADPOOL_SIZE; 4 unless given).'),
    recycle,
  })
  .prefault({})
  .describe('The worker runtime: what Corelane adds to the Node.js processes of the workers.');

export const warmup = z
  .strictObject({
    path: requestTarget().default('/').describe('What is rendered: path and query.'),
    requests: z
      .int()
      .min(0)
      .max(1000)
      .default(0)
      .describe('Renders of the path, one after the other, before a new worker process takes requests.'),
  })
  .prefault({})
  .describe('Renders that a worker does before it reports "up". Works with runtime.instrument only.');
