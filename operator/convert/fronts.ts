/**
 * C010: containers that stand between the Services and the application. The Service of a RenderService leads straight
 * to the workers, so a move would lead clients past a login, or past rules of a proxy. Then nothing is written.
 */
import type { V1Container, V1Service } from '@kubernetes/client-node';
import type { Draft, Said } from './draft.ts';
import { type Pods, pagePort, runningContainers, type ServicePort, targetOf } from './leads.ts';
import type { Found } from './related.ts';
import { listensAt, passesTo, servesAt, wordsOf } from './told-ports.ts';

/** Programs that take requests for others: names of containers, last parts of names of images, and commands. */
const FRONT =
  /(^|-)(nginx|openresty|angie|haproxy|envoy|traefik|caddy|httpd|apache2?|varnishd?|kong|apisix|tyk|krakend|ambassador|emissary|oauth2?-?proxy|vouch(-proxy)?|pomerium|authelia|oathkeeper|gatekeeper|louketo-proxy|kube-rbac-proxy|anubis|ghostunnel|stunnel4?|modsecurity|coraza|waf)(-|$)|^(auth|sso|oidc|reverse)-proxy$/;
/** Containers with such names look like proxies, but take no requests of clients. */
const NO_FRONT = /export|metrics|reload|agent|sql-?proxy|bouncer|^istio-|^linkerd-|init$/;
/** Arguments that only proxies have. The Cloud SQL proxy has an --http-address without a port, for its health. */
const FRONT_ARGUMENTS = /^--?(upstreams?(=|$)|https?-address=.*:[0-9])/;
/** Variables of oauth2-proxy, which can be told all by them. */
const FRONT_VARIABLES = /^OAUTH2_PROXY_(UPSTREAMS?|HTTPS?_ADDRESS)$/;

type Candidate = Pick<V1Container, 'name' | 'image' | 'command' | 'args' | 'env'>;

function lastPart(path: string | undefined): string {
  return path?.split('/').at(-1) ?? '';
}

/** Whether a container is a proxy or a login, by its name, its image, its command or its arguments. */
export function isFront(container: Candidate): boolean {
  const { name, image } = container;
  const [program = ''] = lastPart(image).split(/[:@]/);
  const words = wordsOf(container);
  // The proxy of Istio takes requests for others in its role as a gateway; as a sidecar the mesh sees to it.
  if ([name, program].some((one) => /^(istio-proxy|proxyv2)$/.test(one))) return words.includes('router');
  if ([name, program].some((one) => NO_FRONT.test(one))) return false;
  const command = commandOf(words);
  const isTold =
    words.some((word) => FRONT_ARGUMENTS.test(word)) ||
    (container.env ?? []).some((variable) => FRONT_VARIABLES.test(variable.name));
  return isTold || [name, program, ...(NO_FRONT.test(command) ? [] : [command])].some((one) => FRONT.test(one));
}

/** The program that a command line starts, behind a shell or a small init. */
function commandOf(words: string[]): string {
  const programs = words.filter((word) => !word.startsWith('-')).map((word) => lastPart(word));
  return programs.find((word) => !/^((ba|da|a)?sh|exec|env|tini|dumb-init|catatonit)$/.test(word)) ?? '';
}

/** Refuses what would lead clients of a Service past a container. @param name of the RenderService */
export function refuseFronts(draft: Draft, services: Found<V1Service>[], pods: Pods, name: string): void {
  for (const [index, { manifest, value }] of services.entries()) {
    const ports = value.spec?.ports ?? [];
    const page = index === 0 ? pagePort(value) : undefined;
    const found = ports.map((port) => ({ port, before: beforeWorker(port, pods, port === page) }));
    const first = found.find(({ before }) => before !== undefined);
    if (first?.before === undefined) continue;
    const { port, before } = first;
    draft.refuse(`spec.ports[${ports.indexOf(port)}]`, {
      code: 'C010',
      object: `Service/${manifest.name}`,
      ...(before.isSure ? frontSaid(before.container, port, pods, name) : silentSaid(before.container, port, pods)),
    });
  }
  if (services.length === 0) refuseUnknown(draft, pods);
}

type Told = Pick<Said, 'what' | 'why' | 'wayOut'>;

function frontSaid({ name: front }: V1Container, { port }: ServicePort, { worker }: Pods, name: string): Told {
  return {
    what: `port ${port} leads to container ${front}, which stands before ${worker.name}`,
    why: `The Service of a RenderService leads straight to the workers, which are made of ${worker.name}, so clients would come past ${front}`,
    wayOut: wayOut(front, worker.name, name),
  };
}

function silentSaid({ name: other }: V1Container, port: ServicePort, { worker }: Pods): Told {
  const target = port.targetPort ?? port.port;
  return {
    what: `port ${port.port} leads to ${target}, which no container declares, and ${worker.name} declares others`,
    why: `If ${other} listens there it stands before ${worker.name}, and clients would come past it`,
    wayOut: `Declare containerPort ${target} in the ports of the container that listens there, and convert again.`,
  };
}

interface Before {
  container: V1Container;
  /** Whether it is known for a proxy, or declares the port. */
  isSure: boolean;
}

/** The container before the worker that a port leads to; undefined where it leads to the worker, or beside it. */
function beforeWorker(port: ServicePort, pods: Pods, isPage: boolean): Before | undefined {
  const { to, owners } = targetOf(port, pods.spec);
  const others = runningContainers(pods.spec).filter((one) => one !== pods.worker);
  const fronts = others.filter((one) => isFront(one) || isBefore(one, pods.worker));
  // A declaration opens nothing and may be missing, or stand in the wrong container; a command line counts.
  const told = typeof to === 'number' ? fronts.find((one) => listensAt(one, to)) : undefined;
  if (told) return { container: told, isSure: true };
  if (owners.includes(pods.worker)) return undefined;
  if (owners.length > 0) return sure(isPage ? owners[0] : owners.find((one) => fronts.includes(one)));
  if (typeof to === 'number' && servesAt(pods.worker, to)) return undefined;
  const isSilent = (one: V1Container) => (one.ports ?? []).length === 0;
  // One that passes requests on to this port does not listen there.
  const isPassing = (one: V1Container) => typeof to === 'number' && passesTo(one, to);
  const front = fronts.find((one) => isSilent(one) && !isPassing(one));
  if (front || !isPage || isSilent(pods.worker) || others.some(isPassing)) return sure(front);
  const other = fronts[0] ?? others.find((one) => isSilent(one) && !NO_FRONT.test(one.name));
  return other && { container: other, isSure: false };
}

function sure(container: V1Container | undefined): Before | undefined {
  return container && { container, isSure: true };
}

/** Whether it is told to pass requests on to a port of the worker. */
function isBefore(other: V1Container, worker: V1Container): boolean {
  const declared = (worker.ports ?? []).map(({ containerPort }) => containerPort);
  const told = Number((worker.env ?? []).find(({ name }) => name === 'PORT')?.value);
  const isAside = [other.name, lastPart(other.image)].some((one) => NO_FRONT.test(one));
  return !isAside && [...declared, told].some((port) => passesTo(other, port));
}

function wayOut(front: string, worker: string, name: string): string {
  return `If ${front} only passes requests on, take it out of the Deployment, let the Service lead to ${worker}, and convert again. If it decides who comes in, run it in a Deployment of its own, with Service ${name} as its upstream (docs/convert.md). If ${front} renders the pages: --container ${front}.`;
}

/** Without a Service nobody knows which container clients reach. */
function refuseUnknown(draft: Draft, { spec, worker }: Pods): void {
  const front = runningContainers(spec).find((one) => one !== worker && (isFront(one) || isBefore(one, worker)));
  if (front === undefined) return;
  const list = spec.containers.includes(front) ? 'containers' : 'initContainers';
  draft.refuse(['spec', 'template', 'spec', list, (spec[list] ?? []).indexOf(front)], {
    code: 'C010',
    what: `container ${front.name} may stand before ${worker.name}, and no Service says so`,
    why: `The Service of a RenderService leads straight to the workers, which are made of ${worker.name}, so clients would come past ${front.name}`,
    wayOut: 'Give the Service that leads to the pods with -f, and convert again.',
  });
}
