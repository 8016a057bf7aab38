/** C024: what a cluster would refuse, which only its API server knows. */
import type { Finding } from './finding.ts';
import type { Rule } from './workload.ts';

const WAY_OUT = 'Change it as the message says, or speak with whoever made that rule';

export const serverRule: Rule = {
  codes: ['C024'],
  skipped({ surroundings: { server } }) {
    if (server === undefined) return 'ask a cluster with --server';
    if (server.notAsked.length === 0) return undefined;
    return `your rights, or a webhook without dry runs, do not let it ask about ${server.notAsked.join(', ')}`;
  },
  find({ object, surroundings }) {
    return (surroundings.server?.refusals ?? []).map(
      ({ what, wayOut = WAY_OUT }): Finding => ({
        code: 'C024',
        level: 'error',
        object,
        path: 'spec',
        what,
        why: 'The API server of the cluster says so, or the operator would',
        wayOut: `${wayOut.charAt(0).toUpperCase()}${wayOut.slice(1)}.`,
      }),
    );
  },
};
