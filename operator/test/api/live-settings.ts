/** Pods that the tests of live settings answer for, and the settings that the operator writes. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { ApiClient, type Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import type { World } from '../support/world.ts';

/** Port 8999 of a pod: what `page` gives for a path, else 404. */
export async function serveAt(address: string, page: (url: string) => string | undefined): Promise<Server> {
  const server = createServer(({ url = '' }, response) => {
    const body = page(url);
    response.writeHead(body === undefined ? 404 : 200).end(body);
  });
  await once(server.listen(8999, address), 'listening');
  return server;
}

/** The pods of a RenderService. */
export async function podsOf(world: World, name: string): Promise<Json[]> {
  return (await world.list('Pod')).filter(({ metadata }) => metadata.name.startsWith(`${name}-`));
}

/** Tells the API server where the pods of a RenderService are, as kubelet would. */
export async function addressPods(world: World, name: string, addresses: string[]): Promise<void> {
  await eventually('all pods are there', async () => expect(await podsOf(world, name)).toHaveLength(addresses.length));
  await world.makePodsReady(name);
  for (const [index, { metadata }] of (await podsOf(world, name)).entries()) {
    const podIP = addresses[index];
    await world.admin.patch(`${world.path('Pod', metadata.name)}/status`, {
      status: { podIP, podIPs: [{ ip: podIP }] },
    });
  }
}

/**
 * A policy of the cluster by which the operator may write no object of this kind here. Resolves when it is in force.
 * @param name of an object that there is
 * @returns takes it away, and resolves when the operator may write again
 */
export async function refuse(
  world: World,
  kind: 'Deployment' | 'ConfigMap',
  name: string,
): Promise<() => Promise<void>> {
  const root = '/apis/admissionregistration.k8s.io/v1/validatingadmission';
  const policy = `refuse-${kind.toLowerCase()}-${world.namespace}`;
  const [apiGroup, plural] = kind === 'Deployment' ? ['apps', 'deployments'] : ['', 'configmaps'];
  const ofUs = { apiGroups: [apiGroup], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: [plural] };
  await world.admin.post(`${root}policies`, {
    metadata: { name: policy },
    spec: {
      matchConstraints: { resourceRules: [ofUs] },
      matchConditions: [{ name: 'operator', expression: "request.userInfo.username == 'operator'" }],
      validations: [{ expression: 'false', message: 'not today' }],
    },
  });
  await world.admin.post(`${root}policybindings`, {
    metadata: { name: policy },
    spec: {
      policyName: policy,
      validationActions: ['Deny'],
      matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } } },
    },
  });
  const client = new ApiClient(world.server.adminKubeconfig, 'operator');
  const probe = () => client.patch(`${world.path(kind, name)}?dryRun=All`, { metadata: { annotations: { a: 'b' } } });
  await eventually('the policy is in force', () => expect(probe()).rejects.toThrow('not today'));
  return async () => {
    for (const what of ['policybindings', 'policies']) await world.admin.delete(`${root}${what}/${policy}`);
    await eventually('the policy is gone', () => probe());
  };
}

/** The live settings that the operator has written. */
export async function settingsOf(world: World, name: string): Promise<{ serial: string; text: string }> {
  const { data } = await world.get('ConfigMap', `${name}-live`);
  return { serial: /^serial=(\w+)$/m.exec(data.settings)?.[1] as string, text: data.settings };
}
