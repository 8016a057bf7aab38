/** `corelane top`: the workers of a service as lanes, as they are now. */
import { parseArgs } from 'node:util';
import { frame } from '../live/lanes.ts';
import { topReport } from '../live/report.ts';
import type { Source } from '../live/source.ts';
import type { Command } from './command.ts';
import { json } from './json.ts';
import { AllServices } from './service/all-services.ts';
import { PODS_MAX } from './service/cluster-source.ts';
import { INTERVAL_HELP, INTERVAL_OPTION, intervalSeconds } from './service/interval.ts';
import { LiveTop } from './service/live-top.ts';
import { isJson, SOURCE_HELP, SOURCE_OPTIONS, sourceOf } from './service/source-of.ts';
import { printServices, watchServices } from './service/top-services.ts';
import { Watching } from './service/watching.ts';
import { UsageError } from './usage.ts';
import { visible } from './visible.ts';

/** Without a terminal nobody cuts lines. */
const WIDTH = 200;

const help = `
Usage: corelane top NAME [--namespace N | --local] [--interval 2s] [--once] [-o json]
       corelane top [--namespace N | --all-namespaces] [--interval 2s] [--once] [-o json]

The workers of the RenderService NAME as lanes: free or busy, what each renders and for how long, CPU, heap; stuck ones
first, what limits the service above them. Of more than ${PODS_MAX} pods it asks ${PODS_MAX}. Needs what corelane explain
needs. Without a terminal, or with --once, it prints this once.
Without NAME: the RenderServices of a namespace, or of all (which needs "list" on renderservices there), as a table,
those that something limits first. Of many services it asks few pods of each, and says so (3/3 of 20).

${SOURCE_HELP}
${INTERVAL_HELP}
      --once          one look (of services two, an interval apart)
  -A, --all-namespaces  the services of all namespaces
  -o, --output json   one look as JSON

Keys: j and k (or the arrows) choose a worker; o another order (stuck, time, cpu, heap, requests, name); s shows the
last stack of the worker, p takes a CPU profile of 10 s of it (two files in the current folder), q quits.
In a lane each sign is a look: · free, ▇ busy, ! event loop stands still, x down.

Exit code: 0; 64 for options that cannot be used; else 1.
`;

export const command: Command = {
  summary: 'workers as lanes: what each renders now',
  help,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        ...SOURCE_OPTIONS,
        ...INTERVAL_OPTION,
        once: { type: 'boolean', default: false },
        'all-namespaces': { type: 'boolean', short: 'A', default: false },
        output: { type: 'string', short: 'o' },
      },
    });
    const interval = intervalSeconds(values.interval);
    const asJson = isJson(values.output);
    const isLive = process.stdout.isTTY === true && process.stdin.isTTY === true && !values.once && !asJson;
    const { namespace, 'all-namespaces': everywhere } = values;
    if (everywhere && (namespace !== undefined || values.local || positionals.length > 0))
      throw new UsageError('--all-namespaces goes with no name, no --namespace and no --local');
    if (positionals.length === 0 && !values.local) {
      const all = new AllServices({ namespace, everywhere });
      try {
        if (isLive) await watchServices(all, 1000 * interval);
        else await printServices(all, asJson, interval);
      } finally {
        await all.close();
      }
      return 0;
    }
    const source = sourceOf('top', positionals, values);
    try {
      if (isLive) await new LiveTop(source, 1000 * interval).run();
      else await printOnce(source, asJson);
    } finally {
      await source.close();
    }
    return 0;
  },
};

async function printOnce(source: Source, asJson: boolean): Promise<void> {
  const { snapshot, window, lanes } = await new Watching(source).look();
  if (asJson) {
    console.log(json(topReport(snapshot, window, lanes)));
    return;
  }
  const view = {
    snapshot,
    window,
    lanes,
    order: 'stuck',
    chosen: -1,
    panel: [],
    message: '',
  } as const;
  const lines = frame({ ...view, panel: [] }, { width: WIDTH, height: Number.MAX_SAFE_INTEGER, hasKeys: false });
  for (const { text } of lines) console.log(visible(text));
}
