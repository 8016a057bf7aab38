/** Address, credentials and connection pool for one request, as the library's KubeConfig says. */
import { HttpMethod, RequestContext } from '@kubernetes/client-node';
import type { Dispatcher } from 'undici';
import type { PooledKubeConfig, Purpose } from './config.ts';
import { tokenFileOf } from './credentials.ts';

export interface PreparedRequest {
  url: URL;
  headers: Record<string, string>;
  dispatcher: Dispatcher;
}

/** There are no credentials for a request; `cause` is what its source has said, such as an exec plugin. */
export class CredentialsError extends Error {
  constructor(config: PooledKubeConfig, cause: unknown) {
    super(`no credentials from ${sourceOf(config)}`, { cause });
    this.name = 'CredentialsError';
  }
}

function sourceOf(config: PooledKubeConfig): string {
  const user = config.getCurrentUser();
  if (user?.exec) return `the kubeconfig's command "${user.exec.command}"`;
  const file = user && tokenFileOf(user);
  return file ? `the token file ${file}` : 'the kubeconfig';
}

/**
 * @param signal ends the wait for credentials, which may come from a program that never ends
 * @throws Error when the kubeconfig names no cluster, CredentialsError
 */
export async function requestContext(
  config: PooledKubeConfig,
  path: string,
  query: Record<string, string>,
  signal: AbortSignal,
  purpose: Purpose = 'calls',
): Promise<PreparedRequest> {
  const cluster = config.getCurrentCluster();
  if (!cluster) throw new Error('the kubeconfig names no current cluster');
  const url = new URL(cluster.server + path);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  const context = new RequestContext(url.toString(), HttpMethod.GET);
  try {
    await Promise.race([config.applySecurityAuthentication(context), rejected(signal)]);
  } catch (error) {
    throw new CredentialsError(config, error);
  }
  const dispatcher = config.pool(purpose) ?? (context.getDispatcher() as unknown as Dispatcher);
  return { url, headers: context.getHeaders(), dispatcher };
}

function rejected(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const end = () => reject(new Error('they have not come in time'));
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
}
