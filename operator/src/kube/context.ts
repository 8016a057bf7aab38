/** Address, credentials and connection pool for one request, as the library's KubeConfig says. */
import type { Dispatcher } from 'undici';
import type { PooledKubeConfig } from './config.ts';

export interface PreparedRequest {
  url: URL;
  headers: Record<string, string>;
  dispatcher: Dispatcher;
}

type Context = Parameters<PooledKubeConfig['applySecurityAuthentication']>[0];

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
  const headers: Record<string, string> = {};
  let dispatcher: Dispatcher | undefined;
  // The part of the library's RequestContext that authentication touches.
  await config.applySecurityAuthentication({
    setHeaderParam: (name: string, value: string) => {
      headers[name] = value;
    },
    setDispatcher: (value: Dispatcher) => {
      dispatcher = value;
    },
  } as unknown as Context);
  return { url, headers, dispatcher: dispatcher as Dispatcher };
}
