/**
 * What names a port of the old pods elsewhere: annotations, probes of other containers, Ingresses, monitors. In the new
 * pods pages are at port 9000, and the workers listen on loopback.
 */
import type { V1Container } from '@kubernetes/client-node';
import { PORTS } from '../src/api/names.ts';
import type { Draft } from './draft.ts';
import { type Pods, runningContainers } from './leads.ts';
import { isRecord, type Manifest, type Path, pathText } from './manifests.ts';
import type { Related } from './related.ts';
import { leaves } from './template.ts';
import { passesTo } from './told-ports.ts';

const TEMPLATE: Path = ['spec', 'template'];
/** Lists of ports that a mesh lets in, or leaves alone. */
const OF_MESHES =
  /^(config\.linkerd\.io\/(skip-inbound-ports|opaque-ports)|traffic\.sidecar\.istio\.io\/(in|ex)cludeInboundPorts)$/;
/** Other annotations whose values are ports of the pod. */
const OF_PORTS = /(^|[/._-])ports?$/i;
/** Ports of others. */
const OUTBOUND = /outbound/i;
/** Name of the port of a RenderService's Service. */
const PORT_NAME = 'http';

/** @param name of the RenderService */
export function followPorts(draft: Draft, related: Related, pods: Pods, name: string): void {
  const ports = oldPorts(pods);
  followAnnotations(draft, ports, pods.pages);
  sayOthers(draft, ports, pods);
  sayIngresses(draft, related, name);
  for (const monitor of related.monitors) sayMonitor(draft, monitor);
}

/** Ports of the worker, as it declares them and is told them. */
function oldPorts({ worker, pages }: Pods): number[] {
  const declared = (worker.ports ?? []).map(({ containerPort }) => containerPort);
  const told = (worker.env ?? []).filter(({ name }) => name === 'PORT').map(({ value }) => Number(value));
  const all = [...(typeof pages === 'number' ? [pages] : []), ...declared, ...told];
  return [...new Set(all)].filter((port) => Number.isInteger(port) && port > 0);
}

function followAnnotations(draft: Draft, ports: number[], pages: Pods['pages']): void {
  for (const [key, value] of Object.entries(draft.template().metadata?.annotations ?? {})) {
    const path: Path = [...TEMPLATE, 'metadata', 'annotations', key];
    const items = String(value)
      .split(',')
      .map((item) => item.trim());
    const named = items.find((item) => ports.includes(Number(item)));
    if (named === undefined) continue;
    if (OF_MESHES.test(key) && items.includes(String(pages))) {
      const text = items.map((item) => (item === String(pages) ? String(PORTS.http) : item)).join(',');
      draft.replace(path, text);
      draft.say(path, {
        code: 'C016',
        level: 'info',
        what: `${value} is now ${text}`,
        why: `Pages are at port ${PORTS.http} of the pod`,
        wayOut: 'Let port 8999 past the mesh as well, if the operator is outside of it (docs/meshes.md).',
      });
    } else if ((OF_PORTS.test(key) || OF_MESHES.test(key)) && !OUTBOUND.test(key)) {
      draft.say(path, {
        code: 'C016',
        level: 'decide',
        what: `it names port ${named} of the old application`,
        why: `In the new pods nothing listens there: pages are at ${PORTS.http}, and each worker is on loopback`,
        wayOut: 'For metrics write 8999 (docs/metrics.md), for pages 9000, or leave the annotation out.',
      });
    }
  }
}

const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe', 'lifecycle'] as const;

/** Containers beside the workers that ask a port of the old worker. */
function sayOthers(draft: Draft, ports: number[], { spec, worker }: Pods): void {
  for (const container of runningContainers(spec)) {
    if (container === worker) continue;
    const list = spec.containers.includes(container) ? 'containers' : 'initContainers';
    const path: Path = [...TEMPLATE, 'spec', list, (spec[list] ?? []).indexOf(container)];
    const asked = ports.find((port) => passesTo(container, port));
    // A container in front is told already.
    if (asked !== undefined && !draft.isRefused) sayAsked(draft, path, container, asked);
    for (const probe of PROBES) sayProbe(draft, [...path, probe], container, ports);
  }
}

function sayAsked(draft: Draft, path: Path, { name }: V1Container, port: number): void {
  draft.say(path, {
    code: 'C016',
    level: 'decide',
    what: `container ${name} is told port ${port} of the old application`,
    why: `In the new pods nothing listens there: pages are at ${PORTS.http}`,
    wayOut: `Write ${PORTS.http} for it, or take the container out.`,
  });
}

function sayProbe(draft: Draft, path: Path, { name, ports: own }: V1Container, ports: number[]): void {
  const foreign = ports.filter((port) => !(own ?? []).some(({ containerPort }) => containerPort === port));
  for (const { path: at, value } of leaves(draft.get(path), path)) {
    if (at.at(-1) !== 'port' || typeof value !== 'number' || !foreign.includes(value)) continue;
    draft.say(at, {
      code: 'C001',
      level: 'decide',
      what: `container ${name} is judged by port ${value} of the old application`,
      why: `In the new pods nothing listens there, so ${name} never becomes ready, or is started again and again`,
      wayOut: `Let it ask ${name} itself. Corelane checks the workers.`,
    });
  }
}

/** Ingresses of the Service that the RenderService replaces, whose port has another name then. */
function sayIngresses(draft: Draft, { ingresses }: Related, name: string): void {
  const isReplaced = draft.findings.some(({ object, fate }) => object === `Service/${name}` && fate === 'replaced');
  if (!isReplaced) return;
  for (const { manifest, value } of ingresses) {
    for (const { path, value: service } of leaves(value.spec ?? {}, ['spec'])) {
      if (path.at(-1) !== 'service' || !isRecord(service) || service.name !== name || !isRecord(service.port)) continue;
      const { name: port } = service.port;
      if (typeof port !== 'string' || port === PORT_NAME) continue;
      draft.say(pathText([...path, 'port', 'name']), {
        code: 'C010',
        level: 'decide',
        object: `Ingress/${manifest.name}`,
        what: `it names port ${port} of Service ${name}`,
        why: `The Service of a RenderService calls its port ${PORT_NAME}`,
        wayOut: `Write port: { name: ${PORT_NAME} }, together with the move, or choose another name with --name.`,
        fate: 'kept',
      });
    }
  }
}

/** Says what a ServiceMonitor or PodMonitor finds. */
function sayMonitor(draft: Draft, { kind, name }: Manifest): void {
  const isOfPods = kind === 'PodMonitor';
  draft.say('spec.selector', {
    code: 'C016',
    level: 'decide',
    object: `${kind}/${name}`,
    what: isOfPods ? 'it selects the old pods' : 'it selects a Service of the old pods',
    why: isOfPods
      ? 'The new pods have other labels, and other names of ports'
      : 'By that Service a scrape reaches one worker of a pod, or nothing',
    wayOut:
      'Scrape port 8999 of the new pods (the chart does with podMonitor.enabled), and push metrics of the program (docs/metrics.md).',
    fate: 'kept',
  });
}
