/** Pods that the tests of live settings answer for, and the settings that the operator writes. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Json } from '../support/api-client.ts';
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

/** The live settings that the operator has written. */
export async function settingsOf(world: World, name: string): Promise<{ serial: string; text: string }> {
  const { data } = await world.get('ConfigMap', `${name}-live`);
  return { serial: /^serial=(\w+)$/m.exec(data.settings)?.[1] as string, text: data.settings };
}
