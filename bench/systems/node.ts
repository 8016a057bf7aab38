/** Node.js by itself: its `cluster` module, and PM2 in cluster mode. Both hand out connections in turn. */
import { fileURLToPath } from 'node:url';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { InOneContainer } from './in-one-container.ts';

const PORT = 9000;
const PEERS = fileURLToPath(new URL('../peers', import.meta.url));
const PM2 = '/peers/node_modules/pm2/bin';

/** @param listen address of the workers; other containers reach them on 0.0.0.0 */
export function startCluster(workers: number, listen = '127.0.0.1'): Promise<InOneContainer> {
  const command = ['node', '/bench/launcher.mjs', 'cluster', String(workers)];
  return InOneContainer.start({
    name: 'cluster',
    workers,
    command,
    env: { PORT: String(PORT), LISTEN: listen },
    ports: [PORT],
  });
}

class Pm2 extends InOneContainer {
  /** As its documentation says: a new process is up before an old one is asked to end. */
  override async restartAll(): Promise<void> {
    await docker('exec', this.container, 'node', `${PM2}/pm2`, 'reload', 'all');
  }
}

export function startPm2(workers: number): Promise<InOneContainer> {
  return Pm2.start({
    name: 'pm2',
    workers,
    command: ['node', `${PM2}/pm2-runtime`, 'start', '/bench/worker.mjs', '--instances', String(workers)],
    env: { PORT: String(PORT), PM2_HOME: '/tmp/pm2' },
    ports: [PORT],
    options: ['--volume', `${PEERS}:/peers:ro`],
  });
}
