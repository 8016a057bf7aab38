/**
 * A model of a cluster in which a traffic plan is carried out, command by command. It says what goes wrong on the way:
 * what becomes reachable that was not, what is deleted and should stay, what no longer leads where it led. It knows
 * nothing of how `convert` decides.
 */
import type { V1Container, V1NetworkPolicy, V1PodSpec, V1PodTemplateSpec, V1Service } from '@kubernetes/client-node';
import type { Finding } from '../../../check/finding.ts';
import { isRecord, type Manifest, parseManifests } from '../../../convert/manifests.ts';

type Labels = Record<string, string>;

interface Pods {
  labels: Labels;
  /** Containers of the Deployment that may listen at a port, by number or name; `corelane` for Corelane's own. */
  at(port: number | string, protocol: string): string[];
}

interface ServiceModel {
  type: string;
  selector: Labels;
  ports: { port: number; targetPort: number | string; protocol: string }[];
  annotations: Labels;
  sourceRanges: string;
}

/** A port of a Service, and who answers there. */
interface Way {
  service: string;
  port: number;
  who: string[];
}

/** Input of the model: a plan, and the objects that it is about. */
export interface Planned {
  manifests: Manifest[];
  deployment: Manifest;
  /** YAML of the RenderService. */
  text: string;
  findings: Finding[];
  plan: string[];
}

/** Ports of Corelane's own containers, by their names. */
const OWN: Record<string, number> = { health: 8998, stats: 8999, http: 9000, peers: 9001 };
/** What may be deleted, as kubectl calls it. */
const KINDS: Record<string, string> = {
  deployment: 'Deployment',
  service: 'Service',
  pdb: 'PodDisruptionBudget',
  hpa: 'HorizontalPodAutoscaler',
  scaledobject: 'ScaledObject',
};
/** Programs of the golden files that take requests for others. */
const PROXY = /nginx(?!-(prometheus-)?exporter)|envoy|oauth2-proxy|ambassador|haproxy|gate:/;
/** Fields of a Service that a RenderService makes itself, or has a place for. */
const TAKEN_OVER = [
  ...['selector', 'ports', 'type', 'sessionAffinity', 'internalTrafficPolicy', 'trafficDistribution'],
  ...['ipFamilyPolicy', 'ipFamilies'],
];

function running({ containers, initContainers }: V1PodSpec): V1Container[] {
  return [...containers, ...(initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')];
}

function selects(selector: Labels, labels: Labels): boolean {
  const wanted = Object.entries(selector);
  return wanted.length > 0 && wanted.every(([key, value]) => labels[key] === value);
}

/** Names of the containers that declare a port; of several with a port of that name, the first. */
function declaring(containers: V1Container[], port: number | string, protocol: string): V1Container[] {
  const found = containers.filter(({ ports }) =>
    ports?.some((one) => (one.containerPort === port || one.name === port) && (one.protocol ?? 'TCP') === protocol),
  );
  return typeof port === 'string' ? found.slice(0, 1) : found;
}

function oldPods({ metadata, spec }: V1PodTemplateSpec): Pods {
  const all = running(spec as V1PodSpec);
  return {
    labels: metadata?.labels ?? {},
    at(port, protocol) {
      const found = declaring(all, port, protocol);
      if (found.length > 0 || typeof port === 'string') return found.map(({ name }) => name);
      // A container may listen where it declares nothing.
      const silent = all.filter(({ ports }) => (ports ?? []).length === 0);
      return (silent.length > 0 ? silent : all).map(({ name }) => name);
    },
  };
}

/** The pods of a RenderService. Containers are called as in the Deployment: `convert` keeps their order. */
function newPods({ metadata, spec }: V1PodTemplateSpec, before: V1PodSpec, name: string): Pods & { worker: string } {
  const named = (list: 'containers' | 'initContainers') =>
    (spec?.[list] ?? []).map((container, index) => ({ ...container, old: before[list]?.[index]?.name ?? '' }));
  const containers = named('containers');
  const template = containers.length === 1 ? containers[0] : containers.find((one) => one.name === 'worker');
  const beside = [
    ...containers.filter((one) => one !== template),
    ...named('initContainers').filter(({ restartPolicy }) => restartPolicy === 'Always'),
  ];
  const worker = template?.old ?? '';
  return {
    worker,
    labels: {
      'app.kubernetes.io/name': name,
      'app.kubernetes.io/instance': name,
      'app.kubernetes.io/managed-by': 'corelane',
      ...metadata?.labels,
      'corelane.dev/renderservice': name,
      'corelane.dev/serving': 'true',
    },
    at(port, protocol) {
      const found = declaring(beside, port, protocol) as typeof beside;
      if (found.length > 0) return found.map(({ old }) => old);
      const number = typeof port === 'number' ? port : OWN[port];
      if (number === 9000) return [worker];
      // All others are closed: workers listen on loopback, and what is not declared is shut.
      return number !== undefined && number >= 8998 && number <= 9201 ? ['corelane'] : [];
    },
  };
}

function modelOf({ spec, metadata }: V1Service): ServiceModel {
  return {
    type: spec?.type ?? 'ClusterIP',
    selector: spec?.selector ?? {},
    ports: (spec?.ports ?? []).map(({ port, targetPort, protocol }) => ({
      port,
      targetPort: (targetPort ?? port) as number | string,
      protocol: protocol ?? 'TCP',
    })),
    annotations: metadata?.annotations ?? {},
    sourceRanges: JSON.stringify(spec?.loadBalancerSourceRanges ?? []),
  };
}

/** Whether an API server takes it, as far as golden files have others. */
function isReadable({ spec }: V1Service): boolean {
  return (spec?.ports ?? []).every(({ port }) => Number.isInteger(port));
}

/** Where all Services lead. */
function waysOf(services: Map<string, ServiceModel>, pods: Pods[]): Way[] {
  return [...services].flatMap(([service, { selector, ports }]) =>
    ports.flatMap(({ port, targetPort, protocol }) => {
      const selected = pods.filter(({ labels }) => selects(selector, labels));
      const who = [...new Set(selected.flatMap((one) => one.at(targetPort, protocol)))];
      return who.length > 0 ? [{ service, port, who }] : [];
    }),
  );
}

/** Carries a plan out. @returns what goes wrong, as sentences */
export function violations(planned: Planned): string[] {
  return new Model(planned).run();
}

class Model {
  readonly #planned: Planned;
  readonly #found: string[] = [];
  readonly #services: Map<string, ServiceModel>;
  readonly #budgets: Set<string>;
  readonly #before: { services: Map<string, ServiceModel>; ways: Way[] };
  readonly #old: Pods;
  readonly #pods: Pods[];
  readonly #new: Pods & { worker: string };
  readonly #source: V1PodSpec;
  readonly #resource: { name: string; spec: Record<string, unknown> };

  constructor(planned: Planned) {
    this.#planned = planned;
    const { manifests, deployment, text } = planned;
    const template = (deployment.value as { spec: { template: V1PodTemplateSpec } }).spec.template;
    this.#source = template.spec as V1PodSpec;
    const [resource] = parseManifests(text, 'renderservice.yaml');
    const spec = resource?.value.spec as { template: V1PodTemplateSpec } & Record<string, unknown>;
    this.#resource = { name: resource?.name ?? '', spec };
    this.#new = newPods(spec.template, this.#source, this.#resource.name);
    this.#old = oldPods(template);
    const given = manifests
      .filter(({ kind, value }) => kind === 'Service' && value.apiVersion === 'v1' && isReadable(value as V1Service))
      .map(({ name, value }): [string, ServiceModel] => [name, modelOf(value as V1Service)]);
    this.#services = new Map(given);
    this.#budgets = new Set(manifests.filter(({ kind }) => kind === 'PodDisruptionBudget').map(({ name }) => name));
    this.#pods = [this.#old];
    this.#before = { services: new Map(structuredClone(given)), ways: waysOf(this.#services, this.#pods) };
  }

  run(): string[] {
    for (const line of this.#planned.plan) {
      if (line.startsWith('#')) continue;
      const [, verb = '', rest = ''] = /^kubectl (\S+) (.*)$/.exec(line) ?? [];
      if (verb === 'delete') this.#delete(rest);
      else if (verb === 'patch') this.#patch(rest);
      else if (verb === 'apply' && !this.#apply()) return this.#found;
      else if (!['apply', 'wait', 'port-forward'].includes(verb)) this.#found.push(`what does this do: ${line}`);
      this.#look(line);
    }
    this.#lookAtEnd();
    return this.#found;
  }

  /** Makes what a RenderService makes. @returns whether no object of another owner has the name */
  #apply(): boolean {
    const { name, spec } = this.#resource;
    if (this.#services.has(name) || this.#budgets.has(name)) {
      const isTold = this.#planned.findings.some(
        ({ path, level, what }) => path === 'metadata.name' && level === 'decide' && /already/.test(what),
      );
      if (!isTold) this.#found.push(`the name ${name} is taken, and nobody says so`);
      return false;
    }
    const service = (spec.service ?? {}) as { type?: string; port?: number; annotations?: Labels };
    this.#services.set(name, {
      type: service.type ?? 'ClusterIP',
      selector: { 'corelane.dev/renderservice': name, 'corelane.dev/serving': 'true' },
      ports: [{ port: service.port ?? 80, targetPort: 9000, protocol: 'TCP' }],
      annotations: service.annotations ?? {},
      sourceRanges: JSON.stringify((service as Record<string, unknown>).loadBalancerSourceRanges ?? []),
    });
    this.#pods.push(this.#new);
    this.#lookAtPolicies();
    return true;
  }

  #delete(rest: string): void {
    for (const word of rest.split(' ').filter((one) => one.includes('/'))) {
      const [kind = '', name = ''] = word.split('/');
      const why = this.#mustStay(kind, name);
      if (why !== undefined) this.#found.push(`${word} is deleted, although ${why}`);
      if (kind === 'service') this.#services.delete(name);
      if (kind === 'pdb') this.#budgets.delete(name);
      if (kind === 'deployment') this.#pods.splice(this.#pods.indexOf(this.#old), 1);
    }
  }

  /** Why an object must not be deleted. */
  #mustStay(word: string, name: string): string | undefined {
    const { deployment, findings, manifests } = this.#planned;
    const kind = KINDS[word];
    if (kind === 'Deployment') return name === deployment.name ? undefined : 'it is another one';
    const own = findings.filter(({ object }) => object === `${kind}/${name}`);
    if (own.some(({ wayOut, fate }) => /^Keep (it|the old)/.test(wayOut) || fate === 'kept'))
      return 'a finding keeps it';
    const spec = manifests.find((one) => one.kind === kind && one.name === name)?.value.spec;
    if (!isRecord(spec)) return 'nobody has given it';
    if (kind === 'Service') return this.#whatOfServiceIsLost(name, spec);
    const isForOthers = kind === 'PodDisruptionBudget' && !this.#isForThesePods(spec.selector);
    if (isForOthers) return 'it may be for other pods';
    const becomes = kind === 'PodDisruptionBudget' ? 'became disruptionBudget' : 'became scaling';
    return own.some(({ what }) => what.startsWith(becomes)) ? undefined : 'it is not taken over';
  }

  #whatOfServiceIsLost(name: string, spec: Record<string, unknown>): string | undefined {
    if (name !== this.#resource.name) return 'the RenderService does not take its name';
    const { type = 'ClusterIP' } = spec;
    const lost = Object.keys(spec).filter((key) => !TAKEN_OVER.includes(key));
    return type === 'ClusterIP' && lost.length === 0 ? undefined : `this is lost: ${[type, ...lost].join(', ')}`;
  }

  #isForThesePods(selector: unknown): boolean {
    const { spec } = this.#planned.deployment.value;
    const wanted = labelsOf(selector);
    return Object.entries(labelsOf(isRecord(spec) && spec.selector)).every(([key, value]) => wanted[key] === value);
  }

  #patch(rest: string): void {
    const [, name = '', json = '[]'] = /^service\/(\S+) .*-p '(.*)'$/.exec(rest) ?? [];
    const service = this.#services.get(name);
    if (!service) {
      const isAlone = name === 'SERVICE' && running(this.#source).length === 1 && this.#before.ways.length === 0;
      if (!isAlone) this.#found.push(`${name} is led to the pages, and nobody knows where it leads`);
      return;
    }
    const object: unknown = { spec: service };
    for (const { op, path, value } of JSON.parse(json) as { op: string; path: string; value?: unknown }[]) {
      const steps = path.split('/').slice(1);
      const key = steps.pop() ?? '';
      const parent = steps.reduce<unknown>((node, step) => (node as Record<string, unknown>)[step], object);
      if (op === 'remove' && Array.isArray(parent)) parent.splice(Number(key), 1);
      else if (op === 'replace') (parent as Record<string, unknown>)[key] = value;
      else if (key !== 'appProtocol') this.#found.push(`${op} ${path}`);
    }
  }

  /** What is reachable now, and was not. */
  #look(line: string): void {
    const resting = { ...this.#new.labels, 'corelane.dev/serving': 'false' };
    for (const [name, { selector }] of this.#services)
      if (selects(selector, resting)) this.#found.push(`after "${line.slice(0, 60)}": ${name} leads to pods that rest`);
    for (const way of waysOf(this.#services, this.#pods)) {
      const why = this.#wasClosed(way);
      if (why !== undefined) this.#found.push(`after "${line.slice(0, 60)}": ${why}`);
    }
  }

  #wasClosed({ service, port, who }: Way): string | undefined {
    const where = `${service}:${port}`;
    if (who.includes('corelane')) return `${where} leads to a port of Corelane's`;
    const { services, ways } = this.#before;
    const now = this.#services.get(service);
    const old = services.get(service);
    if (now?.type !== 'ClusterIP' && JSON.stringify(outside(now)) !== JSON.stringify(outside(old)))
      return `${where} is open to the outside`;
    if (!old && Object.keys(now?.annotations ?? {}).length > 0) return `${where} is announced by annotations`;
    // A Service that is new may lead where any old one led; one that was there only where it led itself.
    const same = ways.filter((way) => (old ? way.service === service && way.port === port : true));
    if (ways.length === 0 && !old) return this.#isBehindProxy() ? `${where} leads past a proxy` : undefined;
    // Nobody knows who answers, and it is as it was.
    if (old && same.some((way) => way.who.join() === who.join())) return undefined;
    const isOpen = who.every((one) => same.some((way) => this.#isCertain(way, one)));
    return isOpen ? undefined : `${where} leads to ${who.join(', ')}`;
  }

  /** Whether somebody has reached a container for sure: of several that may listen none is a proxy. */
  #isCertain({ who }: Way, container: string): boolean {
    return who.includes(container) && who.every((one) => one === container || !this.#isProxy(one));
  }

  #isProxy(name: string): boolean {
    const container = running(this.#source).find((one) => one.name === name);
    return PROXY.test(`${container?.name} ${container?.image?.split('/').at(-1)}`);
  }

  #isBehindProxy(): boolean {
    return running(this.#source).some(({ name }) => name !== this.#new.worker && this.#isProxy(name));
  }

  /** The new pods must be closed by policies where the old ones were. */
  #lookAtPolicies(): void {
    const policies = this.#planned.manifests.filter(({ kind }) => kind === 'NetworkPolicy');
    const closing = policies.map(({ value }) => labelsOf((value as V1NetworkPolicy).spec?.podSelector));
    if (!closing.some((selector) => selects(selector, this.#old.labels))) return;
    const { enabled } = (this.#resource.spec.networkPolicy ?? {}) as { enabled?: boolean };
    if (enabled !== false) this.#found.push('the policy of the RenderService lets everybody in');
    if (!closing.some((selector) => selects(selector, this.#new.labels)))
      this.#found.push('no policy closes the new pods');
  }

  /** Each write has its way back, as a comment: to the selector and the ports that there were. */
  #lookBack(): void {
    const { plan } = this.#planned;
    // In place the old pods are gone by then.
    if (plan.some((line) => line.startsWith('# The names are taken'))) return;
    const backs = new Map(plan.flatMap((line) => patchIn(/^# +kubectl patch service\/(\S+) .*-p '(.*)'$/, line)));
    for (const [name] of plan.flatMap((line) => patchIn(/^kubectl patch service\/(\S+) .*-p '(.*)'$/, line))) {
      const before = this.#before.services.get(name);
      const written = JSON.parse(backs.get(name) ?? '[]') as { op: string; path: string; value: unknown }[];
      const value = (path: string) => written.find((one) => one.op === 'replace' && one.path === path)?.value;
      const after = modelOf({ spec: { selector: value('/spec/selector'), ports: value('/spec/ports') } } as V1Service);
      const parts = (model?: ServiceModel) => JSON.stringify([model?.selector, model?.ports]);
      if (before && parts(before) !== parts(after)) this.#found.push(`${name} has no way back`);
    }
  }

  /** Each Service that led to the pages, or to a container beside them, must do so at the end. */
  #lookAtEnd(): void {
    this.#lookBack();
    const now = waysOf(this.#services, this.#pods);
    const { worker } = this.#new;
    for (const service of new Set(this.#before.ways.map((way) => way.service))) {
      const own = (ways: Way[]) => ways.filter((way) => way.service === service);
      const ledToPages = own(this.#before.ways).some(({ who }) => who.join() === worker && this.#isForPages(service));
      if (ledToPages && !own(now).some(({ who }) => who.join() === worker))
        this.#found.push(`${service} no longer leads to the pages`);
      for (const { port, who } of own(this.#before.ways)) {
        const isBeside = who.length === 1 && who[0] !== worker;
        if (isBeside && !own(now).some((way) => way.port === port && way.who.join() === who.join()))
          this.#found.push(`${service}:${port} no longer leads to ${who.join()}`);
      }
    }
  }

  /** A Service that led to other ports of the worker only (an inspector) has nothing to lead to. */
  #isForPages(service: string): boolean {
    return !this.#planned.findings.some(
      ({ object, level, what }) =>
        object === `Service/${service}` && level === 'decide' && /leads to anything/.test(what),
    );
  }
}

function outside(service: ServiceModel | undefined) {
  return [service?.type, service?.sourceRanges, service?.annotations];
}

function labelsOf(selector: unknown): Labels {
  return isRecord(selector) && isRecord(selector.matchLabels) ? (selector.matchLabels as Labels) : {};
}

/** Name and text of a patch, where a line of a plan is one. */
function patchIn(pattern: RegExp, line: string): [name: string, text: string][] {
  const [, name, text] = pattern.exec(line) ?? [];
  return name === undefined || text === undefined ? [] : [[name, text]];
}
