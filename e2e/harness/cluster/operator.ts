/** Installs the operator on the cluster as the README tells users to. */
import { get, KUBECONFIG } from './cluster.ts';
import { run } from './shell.ts';

export const OPERATOR_NAMESPACE = 'corelane';

/** Images as `e2e/images.sh` names them, from the environment. */
export function imageNames(): { operator: string; sidecar: string; storefront: string } {
  const { OPERATOR_IMAGE, SIDECAR_IMAGE, STOREFRONT_IMAGE } = process.env;
  if (!OPERATOR_IMAGE || !SIDECAR_IMAGE || !STOREFRONT_IMAGE) {
    throw new Error('OPERATOR_IMAGE, SIDECAR_IMAGE and STOREFRONT_IMAGE are not set; run this through `make`');
  }
  return { operator: OPERATOR_IMAGE, sidecar: SIDECAR_IMAGE, storefront: STOREFRONT_IMAGE };
}

interface Node {
  status: { addresses: { type: string; address: string }[] };
}

/** Stories read pages of pods through the API server's proxy, which comes from a control plane's address. */
async function apiServers(): Promise<object[]> {
  const { items } = await get<{ items: Node[] }>('nodes', '-l', 'node-role.kubernetes.io/control-plane');
  const addresses = items.flatMap(({ status }) => status.addresses.filter(({ type }) => type === 'InternalIP'));
  return addresses.map(({ address }) => ({ ipBlock: { cidr: `${address}/${address.includes(':') ? 128 : 32}` } }));
}

/**
 * `helm upgrade --install` with the images of this clone; resolves when the operator is available.
 * @param values further values, as `--set-string` takes them
 */
export async function installOperator(...values: string[]): Promise<void> {
  const images = imageNames();
  const image = (prefix: string, name: string) => {
    const colon = name.lastIndexOf(':');
    return [
      '--set',
      `${prefix}.repository=${name.slice(0, colon)}`,
      '--set-string',
      `${prefix}.tag=${name.slice(colon + 1)}`,
    ];
  };
  await run(
    'helm',
    [
      ...['--kubeconfig', KUBECONFIG, 'upgrade', '--install', 'corelane', 'charts/corelane'],
      ...['--namespace', OPERATOR_NAMESPACE, '--create-namespace', '--wait', '--timeout', '120s'],
      // The CRD of a cluster that another version of this chart has been on.
      '--take-ownership',
      ...['--set-json', `networkPolicy.monitoring=${JSON.stringify(await apiServers())}`],
      ...image('image', images.operator),
      ...image('sidecar.image', images.sidecar),
      ...values.flatMap((value) => ['--set-string', value]),
    ],
    { timeoutMs: 150_000 },
  );
}
