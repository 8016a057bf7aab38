/**
 * C010: which name the RenderService gets, and the commands that move traffic to it. The plan is made from the
 * findings: it deletes what they say is replaced, and leads to the new pods what they say is kept.
 */
import type { V1Service } from '@kubernetes/client-node';
import { KIND, LABEL_RENDER_SERVICE, LABEL_SERVING, PORTS } from '../src/api/names.ts';
import { isHttp2, isLost } from './around.ts';
import type { Draft } from './draft.ts';
import { type Pods, runningContainers, wayOf } from './leads.ts';
import type { Manifest } from './manifests.ts';
import type { Found, Related } from './related.ts';

export interface Move {
  draft: Draft;
  related: Related;
  /** All other objects that were read. */
  others: Manifest[];
  pods: Pods;
  /** Name of the RenderService. */
  name: string;
  /** Whether the user has chosen it. */
  isChosen: boolean;
  namespace?: string;
}

/** Says what the name means, and gives the steps; each is a comment or a command. */
export function trafficPlan(move: Move): string[] {
  const { draft, related, others, name, isChosen } = move;
  const own = [...related.services, ...related.budgets].map(({ manifest }) => manifest);
  sayTaken(
    draft,
    others.filter((one) => !own.includes(one)),
    name,
  );
  refuseKept(move, own);
  const isInPlace = replacedObjects(draft).includes(`Service/${name}`);
  draft.say('metadata.name', {
    code: 'C010',
    level: isChosen ? 'info' : 'decide',
    what: isInPlace ? `the ${KIND} has the name of the old objects` : `the ${KIND} is named ${name}`,
    why: isInPlace
      ? `It makes a Service and more of that name, and waits (Stalled) until the old ones are gone`
      : 'Old and new pods run side by side until traffic has moved',
    wayOut: isInPlace
      ? `Choose another one with --name ${name}-render and move traffic without an outage, or delete the old ones first.`
      : 'Follow the traffic plan below.',
    fate: 'replaced',
  });
  return isInPlace ? inPlace(move) : sideBySide(move);
}

/** Kinds of which a RenderService makes an object of its own name. */
const MADE = ['Service', 'PodDisruptionBudget', 'NetworkPolicy'];

/** An object of somebody else that has the name already. */
function sayTaken(draft: Draft, others: Manifest[], name: string): void {
  for (const { kind } of others.filter((one) => MADE.includes(one.kind) && one.name === name)) {
    draft.say('metadata.name', {
      code: 'C010',
      level: 'decide',
      what: `there is a ${kind} ${name} already`,
      why: `A ${KIND} touches nothing that it does not own, and waits (Stalled) until that is gone`,
      wayOut: 'Choose another name with --name.',
    });
  }
}

/** Refuses a name for which something would have to be deleted that stays. */
function refuseKept({ draft, name }: Move, own: Manifest[]): void {
  const replaced = replacedObjects(draft);
  for (const { kind } of own.filter((one) => one.name === name && !replaced.includes(`${one.kind}/${name}`))) {
    draft.refuse('', {
      code: 'C010',
      object: `${kind}/${name}`,
      what: `the ${KIND} would have the name of this ${kind}, which has to stay`,
      why: `A ${KIND} makes a ${kind} of its own name, so this one would have to be deleted first, with all that the new one has no place for`,
      wayOut: `Choose another name, such as --name ${name}-render: then the ${kind} stays.`,
    });
  }
}

/** Kinds that a plan may delete, as kubectl calls them, in the order of the command. */
const DELETED: Record<string, string> = {
  HorizontalPodAutoscaler: 'hpa',
  ScaledObject: 'scaledobject',
  Deployment: 'deployment',
  Service: 'service',
  PodDisruptionBudget: 'pdb',
};

/** Objects that are replaced, and of which no finding says that they stay. */
function replacedObjects({ findings }: Draft): string[] {
  const of = (fate: string) => findings.filter((finding) => finding.fate === fate).map(({ object }) => object);
  const kept = of('kept');
  return [...new Set(of('replaced'))].filter((object) => !kept.includes(object));
}

/** Words for `kubectl delete`. */
function deleted(draft: Draft): string[] {
  const kinds = Object.keys(DELETED);
  const found = replacedObjects(draft).map((object) => {
    const [kind = '', ...name] = object.split('/');
    return { kind, name: name.join('/') };
  });
  return found
    .toSorted((one, other) => kinds.indexOf(one.kind) - kinds.indexOf(other.kind))
    .map(({ kind, name }) => word(`${DELETED[kind]}/${name}`));
}

function flags({ namespace }: Move): string {
  return namespace === undefined ? '' : ` -n ${word(namespace)}`;
}

/** One word of a command that people copy into a shell: objects in a file may be called anything. */
function word(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The new pods, as soon as they are ready. */
function applied(move: Move): string[] {
  const on = flags(move);
  return [
    `kubectl apply -f renderservice.yaml${on}`,
    `kubectl wait --for=condition=Ready ${word(`renderservice/${move.name}`)}${on} --timeout=10m`,
  ];
}

function sideBySide(move: Move): string[] {
  const { draft } = move;
  const name = word(move.name);
  const on = flags(move);
  const all = deleted(draft);
  const inTheWay = all.filter((one) => one === word(`${DELETED.PodDisruptionBudget}/${move.name}`));
  return [
    '# 1. The new pods, beside the old ones. Nothing leads to them yet.',
    ...(inTheWay.length > 0
      ? [
          '#    The new budget has the name of the old one, and takes its place.',
          `kubectl delete ${inTheWay.join(' ')}${on}`,
        ]
      : []),
    ...applied(move),
    '# 2. Look at a page: http://localhost:8080/',
    `kubectl port-forward ${word(`service/${move.name}`)} 8080:${servicePort(move)}${on}`,
    ...moved(move),
    `#    Or, for a part of it, let the Ingress or HTTPRoute lead to Service ${name}.`,
    '# 4. When nobody asks the old pods any more:',
    `kubectl delete ${all.filter((one) => !inTheWay.includes(one)).join(' ')}${on}`,
  ];
}

/** The step that moves traffic. */
function moved(move: Move): string[] {
  const { related, pods } = move;
  if (related.services.length > 0) {
    const back = patches(move, ({ value }) => backOf(value, pods));
    return [
      '# 3. Move traffic: one write, for all clients of the old Service.',
      ...patches(move, ({ value }) => patchOf(value, pods, move.name)),
      ...(back.length > 0
        ? [
            '#    Back, as long as the old pods are there. kubectl apply of the old manifest would leave the new selector',
            '#    beside the old one, and no pod has the labels of both.',
          ]
        : []),
      ...back.map(commented),
    ];
  }
  if (runningContainers(pods.spec).length > 1) {
    return [
      '# 3. Move traffic: give the Service that leads to the old pods with -f, and convert again. To which of the',
      '#    containers its ports lead is to be seen first.',
    ];
  }
  const patch = [selected(move.name), ledToPages(0)];
  return [
    '# 3. Move traffic: one write, for all clients of the old Service. Back: the same with what it had before.',
    `kubectl patch service/SERVICE${flags(move)} --type json -p ${word(JSON.stringify(patch))}`,
    '#    SERVICE is the one that leads to the old pods; given with -f it stands here by its name.',
  ];
}

/** One command for each Service that stays and has something to be written. */
function patches(move: Move, of: (service: Found<V1Service>) => Operation[]): string[] {
  const { related, draft } = move;
  const replaced = replacedObjects(draft);
  return related.services
    .filter(({ manifest }) => !replaced.includes(`Service/${manifest.name}`))
    .flatMap((service) => {
      const patch = of(service);
      const text = word(JSON.stringify(patch));
      if (patch.length === 0) return [];
      return [`kubectl patch ${word(`service/${service.manifest.name}`)}${flags(move)} --type json -p ${text}`];
    });
}

/** A command as a comment, which ends with its line whatever an object is called. */
function commented(command: string): string {
  return `#    ${command.replaceAll(/[\n\r]/g, ' ')}`;
}

interface Operation {
  op: 'replace' | 'remove';
  path: string;
  value?: unknown;
}

/** As the RenderService's own Service selects: not the pods of revisions that rest. */
function selected(name: string): Operation {
  return { op: 'replace', path: '/spec/selector', value: { [LABEL_RENDER_SERVICE]: name, [LABEL_SERVING]: 'true' } };
}

function ledToPages(index: number): Operation {
  return { op: 'replace', path: `/spec/ports/${index}/targetPort`, value: PORTS.http };
}

/**
 * What leads an old Service to the new pods: ports for pages to the proxy, ports of containers beside the workers as
 * they are. All others are taken out: in the new pods their numbers and names may be those of Corelane's own ports.
 */
function patchOf(service: V1Service, pods: Pods, name: string): Operation[] {
  if (isLost(service, pods)) return [];
  const ports = service.spec?.ports ?? [];
  const ways = ports.map((port) => wayOf(port, pods));
  const led = ports.flatMap((port, index): Operation[] => {
    if (ways[index] !== 'pages') return [];
    const protocol: Operation[] = isHttp2(port) ? [{ op: 'remove', path: `/spec/ports/${index}/appProtocol` }] : [];
    return [ledToPages(index), ...protocol];
  });
  const lost = ports.flatMap((_port, index): Operation[] =>
    ways[index] === 'nowhere' ? [{ op: 'remove', path: `/spec/ports/${index}` }] : [],
  );
  // Last ones first: an index behind a removed one means something else.
  return [selected(name), ...led, ...lost.reverse()];
}

/** The writes that lead a Service to the old pods again. */
function backOf(service: V1Service, pods: Pods): Operation[] {
  if (isLost(service, pods)) return [];
  const ports = service.spec?.ports ?? [];
  const led: Operation[] = ports.length > 0 ? [{ op: 'replace', path: '/spec/ports', value: ports }] : [];
  return [{ op: 'replace', path: '/spec/selector', value: service.spec?.selector }, ...led];
}

function servicePort({ draft }: Move): number {
  const { service } = draft.value().spec as { service?: { port?: number } };
  return service?.port ?? 80;
}

function inPlace(move: Move): string[] {
  const rest = patches(move, ({ value }) => patchOf(value, move.pods, move.name));
  return [
    '# The names are taken, so there is an outage from 1 until 2 has ended. Without one: --name.',
    '# 1. Delete the old objects.',
    `kubectl delete ${deleted(move.draft).join(' ')}${flags(move)}`,
    '# 2. The new ones, by the same names.',
    ...applied(move),
    ...(rest.length > 0 ? ['# 3. Lead the Services that stay to the new pods.', ...rest] : []),
  ];
}
