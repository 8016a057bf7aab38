/** `corelane explain`: what limits a service now, in ten lines. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { eventLines, type ServiceEvent } from '../live/events.ts';
import { explain } from '../live/explain.ts';
import { explainReport } from '../live/report.ts';
import { windowOf } from '../live/window.ts';
import type { Command } from './command.ts';
import { json } from './json.ts';
import { secondsOf } from './options.ts';
import { PODS_MAX } from './service/cluster-source.ts';
import { isJson, SOURCE_HELP, SOURCE_OPTIONS, sourceOf } from './service/source-of.ts';
import { UsageError } from './usage.ts';
import { visible } from './visible.ts';

/** A port of a pod is forwarded anew for each look. */
const FOR_MIN_S = 1;
const FOR_MAX_S = 300;

const help = `
Usage: corelane explain NAME [--namespace N | --local] [--for 5s] [-o json]

Says in at most ten lines what limits the RenderService NAME now, with the next step: looks at its pods twice, some
seconds apart, and at what the operator, the scheduler and kubelet say of them. "Now:" is what limits it, "Also:" what
else is wrong. Below that stand the last Events about it, in order. Of more than ${PODS_MAX} pods it asks ${PODS_MAX}. Goes
through the Kubernetes API; needs "get" on renderservices, "list" on pods, "get" and "create" on pods/portforward, and
for the Events "list" on events.

${SOURCE_HELP}
      --for TIME      between the two looks, ${FOR_MIN_S}s to ${FOR_MAX_S / 60}m (5s)
  -o, --output json   as JSON

Exit code: 0; 64 for options that cannot be used; else 1.
`;

export const command: Command = {
  summary: 'what limits a service now, and what to do',
  help,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: { ...SOURCE_OPTIONS, for: { type: 'string', default: '5s' }, output: { type: 'string', short: 'o' } },
    });
    const seconds = secondsOf('for', values.for);
    if (seconds < FOR_MIN_S || seconds > FOR_MAX_S)
      throw new UsageError(`--for must be from ${FOR_MIN_S}s to ${FOR_MAX_S / 60}m, not "${values.for}"`);
    const asJson = isJson(values.output);
    const source = sourceOf('explain', positionals, values);
    try {
      const before = await source.look();
      // Nobody is there who could do anything meanwhile.
      if (before.pods.some(({ figures }) => figures)) await sleep(1000 * seconds);
      const now = await source.look();
      const window = windowOf(now, before);
      // They are beside what was asked.
      const events = await source.events().catch((error: Error) => error);
      if (asJson) console.log(json(explainReport(now, window, Array.isArray(events) ? events : undefined)));
      else for (const line of [...explain(now, window), ...textOf(events)]) console.log(visible(line));
    } finally {
      await source.close();
    }
    return 0;
  },
};

function textOf(events: ServiceEvent[] | Error | undefined): string[] {
  if (Array.isArray(events)) return eventLines(events);
  return [`Events: not known, ${events?.message ?? 'they may not be listed'}`];
}
