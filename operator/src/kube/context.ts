/** Address, credentials and connection pool for one request, as the library's KubeConfig says. */
import { HttpMethod, RequestContext } from '@kubernetes/client-node';
import type { Dispatcher } from 'undici';
import type { PooledKubeConfig } from './config.ts';

export interface PreparedRequest {
  url: URL;
  headers: Record<string, string>;
  dispatcher: Dispatcher;
}

/** @throws Error when the kubeconfig names no cluster */
export async function requestContext(
  config: PooledKubeConfig,
  path: string,
  query: Record<string, string>,
): Promise<PreparedRequest> {
  const cluster = config.getCurrentCluster();
  if (!cluster) throw new Error('the kubeconfig names no current cluster');
  const url = new URL(cluster.server + path);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  const context = new RequestContext(url.toString(), HttpMethod.GET);
  await config.applySecurityAuthentication(context);
  return { url, headers: context.getHeaders(), dispatcher: context.getDispatcher() as unknown as Dispatcher };
}
