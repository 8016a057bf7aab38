/**
 * Keeps a number of workers running, and starts one again at once when it has ended.
 *   launcher.mjs cluster COUNT     Node's cluster, round-robin, all on $PORT
 *   launcher.mjs processes COUNT   plain processes on $PORT, $PORT + 1 ...
 */
import { spawn } from 'node:child_process';
import cluster from 'node:cluster';
import { fileURLToPath } from 'node:url';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));
const [mode, count] = process.argv.slice(2);

const start = {
  cluster: (index) => cluster.fork({ WORKER_INDEX: String(index) }),
  processes: (index) => {
    const env = { ...process.env, WORKER_INDEX: process.env.WORKER_INDEX ?? String(index) };
    return spawn(process.execPath, [WORKER], {
      env: { ...env, PORT: String(Number(process.env.PORT) + index) },
      stdio: 'inherit',
    });
  },
}[mode];

function keep(index) {
  start(index).once('exit', () => keep(index));
}

cluster.schedulingPolicy = cluster.SCHED_RR;
cluster.setupPrimary({ exec: WORKER });
for (let index = 0; index < Number(count); index += 1) keep(index);
