/** `corelane dashboard`: a service live in the browser, through the user's own kubeconfig. */
import { parseArgs } from 'node:util';
import type { Command } from './command.ts';
import { Listener } from './dashboard/listener.ts';
import { openSecretly } from './dashboard/open-page.ts';
import { pageFiles } from './dashboard/page-files.ts';
import { wholeOf } from './options.ts';
import { INTERVAL_HELP, INTERVAL_OPTION, intervalSeconds } from './service/interval.ts';
import { ASKED_HERE_MAX } from './service/local-source.ts';
import { SOURCE_HELP, SOURCE_OPTIONS, sourceOf } from './service/source-of.ts';
import { SIGNALS } from './signals.ts';

/** Of a larger fleet those that are ready first. */
const PODS_MAX = 200;
/** Busy workers that are asked what they render. */
const ASKED_MAX = 200;

const help = `
Usage: corelane dashboard NAME [--namespace N | --local] [--port N] [--open] [--interval 2s]

The RenderService NAME live in the browser: what limits it, each worker of each pod as a lane and what it renders, the
queue, requests that go to other pods, scaling and rollouts on a time line with their reasons, flame graphs. Prints an
address of this machine that only you can use, and serves it until Ctrl-C. Nothing is installed in the cluster; needs
what corelane top needs, and shows Events if you may list them. Of more than ${PODS_MAX} pods it asks ${PODS_MAX}.

${SOURCE_HELP}
      --port N        port on 127.0.0.1 (any that is free)
      --open          opens the page in a browser
${INTERVAL_HELP}; there are none while no page is open

Exit code: 0 when it was ended by Ctrl-C or SIGTERM; 64 for options that cannot be used; else 1.
`;

export const command: Command = {
  summary: 'a service live in the browser',
  help,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        ...SOURCE_OPTIONS,
        port: { type: 'string', default: '0' },
        open: { type: 'boolean', default: false },
        ...INTERVAL_OPTION,
      },
    });
    const interval = intervalSeconds(values.interval);
    const port = wholeOf('port', values.port, { min: 0, max: 65_535 });
    const source = sourceOf('dashboard', positionals, { ...values, podsMax: PODS_MAX });
    try {
      // What it cannot find is said where it stays.
      await source.look();
      const askedMax = values.local ? ASKED_HERE_MAX : ASKED_MAX;
      const pace = { intervalMs: 1000 * interval, askedMax };
      const listener = await Listener.start({ source, files: await pageFiles(), port, ...pace });
      await serve(listener, values.open);
    } finally {
      await source.close();
    }
    return 0;
  },
};

/** Until a signal comes. */
async function serve(listener: Listener, isOpened: boolean): Promise<void> {
  console.log(`${listener.url}\nThis address has a key in it: whoever has it may look. Ctrl-C ends it.`);
  const forget = isOpened
    ? openSecretly(listener.url, () => console.error('corelane: no browser could be opened'))
    : () => {};
  await new Promise<void>((resolve) => {
    for (const signal of SIGNALS) process.once(signal, () => resolve());
  });
  forget();
  listener.close();
}
