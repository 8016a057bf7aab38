/** Entry point of the operator process: environment, log, signals, exit code. */
import { pino } from 'pino';
import { serveHttp } from './http.ts';
import { loadKubeConfig } from './kube/config.ts';
import { createMetrics } from './metrics.ts';
import { Operator } from './operator.ts';
import { readSettings, settingsHelp } from './settings.ts';

/** Exit code of a bad environment, as in sysexits.h (EX_CONFIG). */
const EXIT_CONFIG = 78;

async function main(): Promise<number> {
  if (process.argv.includes('--help')) {
    console.log(`corelane-operator: turns RenderServices into pods.\n\nEnvironment:\n${settingsHelp()}`);
    return 0;
  }
  const settings = readSettings(process.env);
  const log = pino({ level: settings.CORELANE_LOG_LEVEL, base: null, timestamp: pino.stdTimeFunctions.isoTime });
  const config = loadKubeConfig();
  const metrics = createMetrics();
  const operator = new Operator({ config, settings, metrics, log });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      log.info({ signal }, 'stopping: finishing what is being worked on');
      operator.stop();
    });
  }
  const server = await serveHttp(settings.CORELANE_HTTP_PORT, metrics, {
    isLive: () => true, // it answers, so the event loop turns; a lost lead ends the process
    isReady: () => operator.isReady,
  });
  const result = await operator.run();
  server.close();
  server.closeAllConnections();
  await config.close();
  log.info({ result }, 'stopped');
  return result === 'stopped' ? 0 : 1; // a process that lost the lead starts afresh
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`corelane-operator: ${(error as Error).message}`);
  process.exitCode = EXIT_CONFIG;
}
