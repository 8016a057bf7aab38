/** Where a command is to look, by its arguments. */
import type { Source } from '../../live/source.ts';
import { Cluster } from '../cluster.ts';
import { UsageError } from '../usage.ts';
import { ClusterSource } from './cluster-source.ts';
import { LocalSource } from './local-source.ts';

export const SOURCE_OPTIONS = {
  namespace: { type: 'string', short: 'n' },
  local: { type: 'boolean', default: false },
} as const;

export const SOURCE_HELP = `
  -n, --namespace N   namespace (that of the kubeconfig's context)
      --local         a service of corelane run on this machine; NAME may be left out if there is one only`.slice(1);

/** @throws UsageError where the name is missing, or there are several */
export function sourceOf(
  command: string,
  positionals: string[],
  { namespace, local, podsMax }: { namespace?: string | undefined; local: boolean; podsMax?: number },
): Source {
  const [name, ...rest] = positionals;
  if ((name === undefined && !local) || rest.length > 0)
    throw new UsageError(`one name of a RenderService is needed; see corelane ${command} --help`);
  if (local && namespace !== undefined) throw new UsageError('--local has no namespaces');
  return local ? new LocalSource(name) : new ClusterSource(name as string, new Cluster(namespace), podsMax);
}

/** @throws UsageError for another form than text (undefined) and JSON */
export function isJson(output: string | undefined): boolean {
  if (output !== undefined && output !== 'json') throw new UsageError('-o must be json');
  return output === 'json';
}
