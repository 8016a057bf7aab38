/** Entry point of the operator process: environment, log, signals, exit code. */
import { pino } from 'pino';
import manifest from '../../package.json' with { type: 'json' };
import { serveMetrics, serveProbes } from './http.ts';
import { loadKubeConfig } from './kube/config.ts';
import { errorLine } from './kube/error-line.ts';
import { createMetrics } from './metrics.ts';
import { Operator } from './operator.ts';
import { readSettings, settingsHelp } from './settings.ts';

/** Exit code of a bad environment, as in sysexits.h (EX_CONFIG): to start it again is no use. */
const EXIT_CONFIG = 78;

/** The environment is wrong. */
class ConfigError extends Error {}

/** @throws ConfigError with what `read` says */
function configured<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new ConfigError((error as Error).message, { cause: error });
  }
}

async function main(): Promise<number> {
  if (process.argv.includes('--help')) {
    console.log(`corelane-operator: turns RenderServices into pods.\n\nEnvironment:\n${settingsHelp()}`);
    return 0;
  }
  const settings = configured(() => readSettings(process.env));
  const log = pino({
    level: settings.CORELANE_LOG_LEVEL,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: errorLine },
  });
  const config = configured(loadKubeConfig);
  const metrics = createMetrics(manifest.version);
  const operator = new Operator({ config, settings, metrics, log });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      log.info({ signal }, 'stopping: finishing what is being worked on');
      operator.stop();
    });
  }
  const probes = {
    isLive: () => true, // it answers, so the event loop turns; a lost lead ends the process
    notReady: () => operator.notReady,
  };
  const servers = await Promise.all([
    serveProbes(settings.CORELANE_HEALTH_PORT, probes),
    serveMetrics(settings.CORELANE_METRICS_PORT, metrics),
  ]);
  const result = await operator.run();
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
  await config.close();
  log.info({ result }, 'stopped');
  return result === 'stopped' ? 0 : 1; // a process that lost the lead starts afresh
}

try {
  process.exitCode = await main();
} catch (error) {
  const text = error instanceof ConfigError ? error.message : errorLine(error);
  console.error(`corelane-operator: ${text}`);
  // A port that is open already would keep the process.
  process.exit(error instanceof ConfigError ? EXIT_CONFIG : 1);
}
