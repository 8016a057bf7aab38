/** `corelane logs`: slow requests of a service, from the access logs of its pods, and why each was slow. */
import { parseArgs } from 'node:util';
import { SlowRequests, slowLines } from '../live/slow-requests.ts';
import type { Command } from './command.ts';
import { secondsOf, wholeOf } from './options.ts';
import { PODS_MAX } from './service/cluster-source.ts';
import { inTurn } from './service/in-turn.ts';
import { SOURCE_HELP, SOURCE_OPTIONS, sourceOf } from './service/source-of.ts';
import { UsageError } from './usage.ts';
import { visible } from './visible.ts';

/** kubelet gives a log at some 20 MB a second. */
const AT_A_TIME = 4;
const SINCE_MAX_S = 86_400;
const SHOWN_MAX = 1_000;

const help = `
Usage: corelane logs NAME --slow [--than 500ms] [--since 10m] [--limit N] [--namespace N | --local]

Who waited, for which worker, and why: the slowest requests of the RenderService NAME, from the access logs of its pods
as far as kubelet keeps them, at most 64 MiB of each of ${PODS_MAX} pods. A request that waited for its worker is shown
with the one that had the worker before it. Goes through the Kubernetes API; needs "list" on pods, and "get" on
pods/log.

      --slow          the slowest first (there is no other order yet)
      --than TIME     requests that took so long or longer (500ms)
      --since TIME    of the last seconds, minutes or hours (10m)
      --limit N       how many are shown (20)
${SOURCE_HELP}

Exit code: 0; 64 for options that cannot be used; else 1, also if the log of a pod could not be read.
`;

export const command: Command = {
  summary: 'who waited, for which worker, and why',
  help,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        ...SOURCE_OPTIONS,
        slow: { type: 'boolean', default: false },
        than: { type: 'string', default: '500ms' },
        since: { type: 'string', default: '10m' },
        limit: { type: 'string', default: '20' },
      },
    });
    if (!values.slow) throw new UsageError('--slow is needed; for all lines use kubectl logs POD -c nginx');
    const thanMs = 1000 * secondsOf('than', values.than);
    const sinceSeconds = Math.ceil(secondsOf('since', values.since));
    if (sinceSeconds > SINCE_MAX_S) throw new UsageError(`--since must be at most 24h, not "${values.since}"`);
    const kept = wholeOf('limit', values.limit, { min: 1, max: SHOWN_MAX });
    const found = new SlowRequests({ thanMs, kept });
    const source = sourceOf('logs', positionals, values);
    try {
      const pods = await source.podNames();
      const errors = await inTurn(pods, AT_A_TIME, (pod) =>
        source
          .accessLog(pod, sinceSeconds, (line) => found.add(line, pod))
          .then(
            () => undefined,
            (error: Error) => error.message,
          ),
      );
      const failed = errors.filter((error) => error !== undefined);
      const lines = slowLines(found, { thanMs, since: values.since, pods: pods.length - failed.length });
      // Strangers choose what stands in a log.
      for (const line of lines) console.log(visible(line));
      for (const error of failed) console.error(visible(`corelane: ${error}`));
      return failed.length > 0 ? 1 : 0;
    } finally {
      await source.close();
    }
  },
};
