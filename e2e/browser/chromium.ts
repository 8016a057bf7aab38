/** Debian's Chromium in a container, on the network of this machine: pages of 127.0.0.1 are in its reach. */
import { type Browser, chromium } from 'playwright-core';
import { run } from '../harness/cluster/shell.ts';
import { docker, logs, start } from '../harness/engine/docker.ts';
import { until } from '../harness/engine/pod.ts';

/** A container has 64 MB of /dev/shm, and one user; what it opens is our own. */
const OPTIONS = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'],
  // A name of somebody else's that leads here.
  '--host-resolver-rules=MAP rebound.example 127.0.0.1',
];
/** The port that it has chosen stands in its first line. */
const LISTENING = /DevTools listening on (ws:\S+)/;

/** The image with Chromium, built unless the engine has it. */
async function chromiumImage(): Promise<string> {
  const images = await run('e2e/images.sh', ['chromium'], { timeoutMs: 280_000 });
  const image = /^CHROMIUM_IMAGE=(.*)$/m.exec(images)?.[1];
  if (!image) throw new Error(`e2e/images.sh names no image of Chromium: ${images}`);
  return image;
}

/** Until `close`. */
export async function startChromium(): Promise<{ browser: Browser; close: () => Promise<void> }> {
  const command = ['chromium', ...OPTIONS, '--remote-debugging-port=0', '--user-data-dir=/tmp/chromium', 'about:blank'];
  const container = await start('--network=host', '--read-only', '--tmpfs=/tmp', await chromiumImage(), ...command);
  const remove = () => docker('rm', '--force', container);
  try {
    const address = await until('Chromium listens', async () => LISTENING.exec(await logs(container))?.[1], 60_000);
    const browser = await chromium.connectOverCDP(address);
    const close = async () => {
      await browser.close();
      await remove();
    };
    return { browser, close };
  } catch (error) {
    const said = await logs(container).catch(String);
    await remove();
    throw new Error(`${(error as Error).message}\n${said}`);
  }
}
