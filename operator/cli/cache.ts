/** `corelane cache purge`: removes pages from the caches of all pods. */
import { parseArgs } from 'node:util';
import { PORTS } from '../src/api/names.ts';
import { Cluster } from './cluster.ts';
import type { Command } from './command.ts';
import { bodyText, getPodPage, SAID_BYTES_MAX } from './pod-page.ts';
import { podsOf } from './profile-target.ts';
import { UsageError } from './usage.ts';
import { visible } from './visible.ts';

const SECONDS_MAX = 10;
/** What nginx takes for a path: no query, nothing that a request line cannot have. */
const PATH = /^\/[^\s?#]*$/;
const TAG = /^[!-+\--~]+$/;
/** All pages. */
const ALL = '*';

const help = `
Usage: corelane cache purge NAME [--path P | --tag T] [--namespace N]

Removes cached pages from all pods of the RenderService NAME (docs/cache.md): all pages, those of a path (for every
query), or those with a tag (Cache-Tag). They are rendered again when somebody asks. Goes through the Kubernetes API;
needs the verb "list" on pods, and "get" and "create" on pods/portforward.

      --path P        path of the pages, such as /products/1; that path alone, not what is below it
      --tag T         a tag that the application gives its pages in the header Cache-Tag
  -n, --namespace N   namespace (that of the kubeconfig's context)

Exit code: 0 if all running pods have done it; 64 for options that cannot be used; else 1.
`;

export const command: Command = {
  summary: 'removes pages from the caches of all pods',
  help,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: { namespace: { type: 'string', short: 'n' }, path: { type: 'string' }, tag: { type: 'string' } },
    });
    const [verb, name, ...rest] = positionals;
    if (verb !== 'purge' || name === undefined || rest.length > 0)
      throw new UsageError('"purge" and one name of a RenderService are needed; see corelane cache --help');
    const item = itemOf(values);
    const cluster = new Cluster(values.namespace);
    try {
      return await purge(cluster, name, item);
    } finally {
      await cluster.close();
    }
  },
};

/** What to purge, as X-Corelane-Purge says it. */
function itemOf({ path, tag }: { path?: string | undefined; tag?: string | undefined }): string {
  if (path !== undefined && tag !== undefined) throw new UsageError('--path and --tag do not go together');
  if (path !== undefined && !PATH.test(path))
    throw new UsageError(`--path must be a path such as /products/1, without a query, not "${path}"`);
  if (tag !== undefined && !TAG.test(tag))
    throw new UsageError(`--tag must be one tag of Cache-Tag, without blanks and commas, not "${tag}"`);
  if (tag !== undefined) return `tag:${tag}`;
  // As the request line of a browser would have it. Not with a base: "//a" would be a host.
  return path === undefined ? ALL : new URL(`http://pod${path}`).pathname.replaceAll(',', '%2C');
}

async function purge(cluster: Cluster, name: string, item: string): Promise<number> {
  const pods = await podsOf(cluster, name);
  const running = pods.filter(({ status }) => status?.phase === 'Running');
  const results = await Promise.all(running.map(({ metadata }) => purgePod(cluster, metadata?.name ?? '', item)));
  return results.every(Boolean) ? 0 : 1;
}

async function purgePod({ config, namespace }: Cluster, pod: string, item: string): Promise<boolean> {
  // Each pod by itself, so that one that does not answer is named.
  const request = { method: 'POST', path: '/purge-pod', headers: { 'X-Corelane-Purge': item } };
  try {
    const { status, body } = await getPodPage(config, {
      ...{ namespace, pod, port: PORTS.figures, secondsMax: SECONDS_MAX },
      ...request,
    });
    const said = (await bodyText(body, SAID_BYTES_MAX)).trim();
    if (status !== 200) throw new Error(`status ${status}: ${said}`);
    console.log(`${pod}: done`);
    return true;
  } catch (error) {
    const { message } = error as Error;
    const why = /connection refused/.test(message) ? 'it keeps no pages: spec.cache is not enabled' : message;
    // Where no pages are kept any program of the pod may have that port.
    console.error(visible(`${pod}: ${why}`));
    return false;
  }
}
