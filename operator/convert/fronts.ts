/**
 * C010: containers that stand between the Services and the application. The Service of a RenderService leads straight
 * to the workers, so a move would lead clients past a login, or past rules of a proxy. Then nothing is written.
 */
import type { V1Container, V1Service } from '@kubernetes/client-node';
import type { Draft } from './draft.ts';
import { type Pods, pagePort, runningContainers, type ServicePort, targetOf } from './leads.ts';
import type { Found } from './related.ts';

/** Programs that take requests for others: names of containers, and last parts of names of images. */
const FRONT =
  /(^|-)(nginx|openresty|haproxy|envoy|traefik|caddy|httpd|apache2?|varnish|kong|apisix|tyk|ambassador|emissary|oauth2?-?proxy|pomerium|authelia|gatekeeper|louketo-proxy|modsecurity|waf)(-|$)|^(auth|sso|oidc|reverse)-proxy$/;
/** Containers with such names look like proxies, but take no requests of clients. */
const NO_FRONT = /export|metrics|reload|agent|^istio-|^linkerd-|init$/;

/** Whether a container is a proxy or a login, by its name or its image. */
export function isFront({ name, image }: Pick<V1Container, 'name' | 'image'>): boolean {
  const [program = ''] = (image?.split('/').at(-1) ?? '').split(/[:@]/);
  return [name, program].some((one) => FRONT.test(one)) && ![name, program].some((one) => NO_FRONT.test(one));
}

/** Refuses what would lead clients of a Service past a container. @param name of the RenderService */
export function refuseFronts(draft: Draft, services: Found<V1Service>[], pods: Pods, name: string): void {
  for (const [index, { manifest, value }] of services.entries()) {
    const ports = value.spec?.ports ?? [];
    const page = index === 0 ? pagePort(value) : undefined;
    const found = ports.map((port) => ({ port, front: frontOf(port, pods, port === page) }));
    const first = found.find(({ front }) => front !== undefined);
    if (first?.front === undefined) continue;
    const { port, front } = first;
    draft.refuse(`spec.ports[${ports.indexOf(port)}]`, {
      code: 'C010',
      object: `Service/${manifest.name}`,
      what: `port ${port.port} leads to container ${front.name}, which stands before ${pods.worker.name}`,
      why: `The Service of a RenderService leads straight to the workers, which are made of ${pods.worker.name}, so clients would come past ${front.name}`,
      wayOut: wayOut(front.name, pods.worker.name, name),
    });
  }
  if (services.length === 0) refuseUnknown(draft, pods);
}

/** The container before the worker that a port leads to; undefined where it leads to the worker, or beside it. */
function frontOf(port: ServicePort, { spec, worker }: Pods, isPage: boolean): V1Container | undefined {
  const { owners } = targetOf(port, spec);
  if (owners.includes(worker)) return undefined;
  if (!isPage) return owners.find(isFront);
  // A port that nobody declares may be that of a proxy that declares none.
  const silent = runningContainers(spec).find(
    (one) => one !== worker && isFront(one) && (one.ports ?? []).length === 0,
  );
  return owners[0] ?? silent;
}

function wayOut(front: string, worker: string, name: string): string {
  return `If ${front} only passes requests on, take it out of the Deployment, let the Service lead to ${worker}, and convert again. If it decides who comes in, run it in a Deployment of its own, with Service ${name} as its upstream (docs/convert.md). If ${front} renders the pages: --container ${front}.`;
}

/** Without a Service nobody knows which container clients reach. */
function refuseUnknown(draft: Draft, { spec, worker }: Pods): void {
  const front = runningContainers(spec).find((one) => one !== worker && isFront(one));
  if (front === undefined) return;
  const list = spec.containers.includes(front) ? 'containers' : 'initContainers';
  draft.refuse(['spec', 'template', 'spec', list, (spec[list] ?? []).indexOf(front)], {
    code: 'C010',
    what: `container ${front.name} may stand before ${worker.name}, and no Service says so`,
    why: `The Service of a RenderService leads straight to the workers, which are made of ${worker.name}, so clients would come past ${front.name}`,
    wayOut: 'Give the Service that leads to the pods with -f, and convert again.',
  });
}
