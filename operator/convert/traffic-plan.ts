/** C010: which name the RenderService gets, and the commands that move traffic to it. */
import { KIND, LABEL_RENDER_SERVICE, PORTS } from '../src/api/names.ts';
import { isHttp2, pagePort } from './around.ts';
import type { Draft } from './draft.ts';
import type { Manifest } from './manifests.ts';
import type { Related } from './related.ts';

export interface Move {
  draft: Draft;
  related: Related;
  /** All other objects that were read. */
  others: Manifest[];
  /** Name of the RenderService. */
  name: string;
  /** Whether the user has chosen it. */
  isChosen: boolean;
  namespace?: string;
  /** Kind and name of the autoscaler that `scaling` replaces. */
  replaced?: string;
}

/** Says what the name means, and gives the steps; each is a comment or a command. */
export function trafficPlan(move: Move): string[] {
  const { draft, related, others, name, isChosen } = move;
  const services = related.services.map(({ manifest }) => manifest.name);
  const budgets = related.budgets.map(({ manifest }) => manifest.name);
  // Not the Deployment: those of a RenderService have the names of its revisions.
  const isClash = [...services, ...budgets].includes(name);
  if (!isClash) sayTaken(draft, others, name);
  const balanced = related.services.find(({ value }) => ['LoadBalancer', 'NodePort'].includes(value.spec?.type ?? ''));
  draft.say('metadata.name', {
    code: 'C010',
    level: isChosen ? 'info' : 'decide',
    what: isClash ? `the ${KIND} has the name of the old objects` : `the ${KIND} is named ${name}`,
    why: isClash
      ? `It makes a Service and more of that name, and waits (Stalled) until the old ones are gone`
      : 'Old and new pods run side by side until traffic has moved',
    wayOut: isClash
      ? `Choose another one with --name ${name}-render and move traffic without an outage, or delete the old ones first.`
      : 'Follow the traffic plan below.',
  });
  if (balanced && !isClash) {
    draft.say('spec.type', {
      code: 'C010',
      level: 'decide',
      object: `Service/${balanced.manifest.name}`,
      what: `spec.service.type: ${balanced.value.spec?.type} makes a second Service of that type`,
      why: 'It has an address of its own, and clients know the old one',
      wayOut: `Remove spec.service and move the selector of the old Service (traffic plan), or move DNS.`,
    });
  }
  return isClash ? inPlace(move) : sideBySide(move);
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

function flags({ namespace }: Move): string {
  return namespace === undefined ? '' : ` -n ${word(namespace)}`;
}

/** One word of a command that people copy into a shell: objects in a file may be called anything. */
function word(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Kinds and names of what the old Deployment leaves behind. */
function leftovers({ draft, related, replaced }: Move, withServices: boolean): string {
  const names = (kind: string, found: { manifest: { name: string } }[]) =>
    found.map(({ manifest }) => word(`${kind}/${manifest.name}`));
  return [
    ...(replaced === undefined ? [] : [word(replaced.replace('HorizontalPodAutoscaler', 'hpa').toLowerCase())]),
    word(`deployment/${draft.source.name}`),
    ...(withServices ? names('service', related.services) : []),
    ...names('pdb', related.budgets),
  ].join(' ');
}

function sideBySide(move: Move): string[] {
  const { related } = move;
  const name = word(move.name);
  const on = flags(move);
  const service = related.services[0];
  const port = pagePort(service?.value);
  const path = `/spec/ports/${Math.max(0, (service?.value.spec?.ports ?? []).indexOf(port as never))}`;
  const patch = JSON.stringify([
    { op: 'replace', path: '/spec/selector', value: { [LABEL_RENDER_SERVICE]: move.name } },
    { op: 'replace', path: `${path}/targetPort`, value: PORTS.http },
    ...(isHttp2(port) ? [{ op: 'remove', path: `${path}/appProtocol` }] : []),
  ]);
  return [
    '# 1. The new pods, beside the old ones. Nothing leads to them yet.',
    `kubectl apply -f renderservice.yaml${on}`,
    `kubectl wait --for=condition=Ready ${word(`renderservice/${move.name}`)}${on} --timeout=10m`,
    '# 2. Look at a page: http://localhost:8080/',
    `kubectl port-forward ${word(`service/${move.name}`)} 8080:${move.draft.value().spec.service ? servicePort(move) : 80}${on}`,
    '# 3. Move traffic: one write, for all clients of the old Service. Back: apply its old manifest.',
    `kubectl patch ${word(`service/${service?.manifest.name ?? 'SERVICE'}`)}${on} --type json -p ${word(patch)}`,
    ...(service
      ? []
      : ['#    SERVICE is the one that leads to the old pods; given with -f it stands here by its name.']),
    `#    Or, for a part of it, let the Ingress or HTTPRoute lead to Service ${name}.`,
    '# 4. When nobody asks the old pods any more:',
    `kubectl delete ${leftovers(move, false)}${on}`,
  ];
}

function servicePort({ draft }: Move): number {
  const { service } = draft.value().spec as { service?: { port?: number } };
  return service?.port ?? 80;
}

function inPlace(move: Move): string[] {
  const on = flags(move);
  return [
    '# The names are taken, so there is an outage from 1 until 2 has ended. Without one: --name.',
    '# 1. Delete the old objects.',
    `kubectl delete ${leftovers(move, true)}${on}`,
    '# 2. The new ones, by the same names.',
    `kubectl apply -f renderservice.yaml${on}`,
    `kubectl wait --for=condition=Ready ${word(`renderservice/${move.name}`)}${on} --timeout=10m`,
  ];
}
