/** The pod template as a whole: what says nothing, what would be refused, labels and what selects by them. */
import type { V1ContainerPort, V1LabelSelector } from '@kubernetes/client-node';
import { LABEL_RENDER_SERVICE } from '../src/api/names.ts';
import type { Draft, Said } from './draft.ts';
import { isRecord, type Path } from './manifests.ts';
import { matches } from './selectors.ts';

const TEMPLATE: Path = ['spec', 'template'];
/** Empty, these say nothing; an empty `emptyDir` says much. */
const EMPTY_SAYS_NOTHING = ['resources', 'securityContext', 'labels', 'annotations', 'affinity'];

/** Every value below `value`, the innermost first. */
export function* leaves(value: unknown, path: Path): Generator<{ path: Path; value: unknown }> {
  if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* leaves(item, [...path, index]);
  else if (isRecord(value)) for (const [key, item] of Object.entries(value)) yield* leaves(item, [...path, key]);
  yield { path, value };
}

function isEmpty(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).length === 0;
}

/** Takes out what says nothing: `creationTimestamp: null`, `resources: {}`. */
export function removeNothing(draft: Draft): void {
  const paths = [...leaves(draft.template(), TEMPLATE)]
    .filter(({ path, value }) => {
      const key = path.at(-1);
      return value === null || (isEmpty(value) && EMPTY_SAYS_NOTHING.includes(String(key)) && typeof key === 'string');
    })
    .map(({ path }) => path)
    // A null in a list is an item, and the indices behind it must stay.
    .filter((path) => typeof path.at(-1) === 'string');
  draft.removeAll(paths, {
    code: 'C016',
    level: 'info',
    what: 'left out',
    why: 'Empty, it says nothing',
    wayOut: 'Nothing to do.',
  });
}

/** A Deployment takes `cpu: 0.5`; a custom resource wants quotes around a fraction. */
export function quoteFractions(draft: Draft): void {
  for (const { path, value } of leaves(draft.template(), TEMPLATE)) {
    if (typeof value === 'number' && !Number.isInteger(value)) draft.replace(path, String(value));
  }
}

/** A Deployment takes lists in which an item stands twice; a custom resource refuses what has the same key. */
export function removeDuplicates(draft: Draft): void {
  const spec = draft.template().spec;
  const at = (...steps: Path) => [...TEMPLATE, 'spec', ...steps];
  for (const list of ['containers', 'initContainers'] as const) {
    for (const [index, { env, ports }] of (spec?.[list] ?? []).entries()) {
      removeEarlier(draft, at(list, index, 'env'), env, ({ name }) => name, 'The last one counts');
      const key = ({ containerPort, protocol = 'TCP' }: V1ContainerPort) => `${containerPort}/${protocol}`;
      removeEarlier(draft, at(list, index, 'ports'), ports, key, 'It is the same port by two names');
    }
  }
  removeEarlier(draft, at('imagePullSecrets'), spec?.imagePullSecrets, ({ name }) => name, 'It is the same');
  const aliases = spec?.hostAliases ?? [];
  const ips = new Set(aliases.map(({ ip }) => ip));
  if (ips.size === aliases.length) return;
  const merged = [...ips].map((ip) => ({
    ip,
    hostnames: [...new Set(aliases.filter((one) => one.ip === ip).flatMap(({ hostnames }) => hostnames ?? []))],
  }));
  draft.replace(at('hostAliases'), merged);
  draft.say(at('hostAliases'), {
    code: 'C016',
    level: 'info',
    what: 'the names of one address stand together now',
    why: 'A RenderService takes an address once',
    wayOut: 'Nothing to do.',
  });
}

/** Takes out items whose key comes again further down. */
function removeEarlier<T>(
  draft: Draft,
  path: Path,
  items: T[] | undefined,
  keyOf: (item: T) => string | undefined,
  why: string,
): void {
  const keys = (items ?? []).map((item) => keyOf(item));
  const earlier = keys.flatMap((key, index) => (keys.includes(key, index + 1) ? [[...path, index]] : []));
  draft.removeAll(earlier, {
    code: 'C016',
    level: 'warning',
    what: 'removed: it stands there twice',
    why: `${why}, and a RenderService takes it once`,
    wayOut: 'Look whether the last one is meant.',
  });
}

/** What a pod of a RenderService must not be. */
export function removeRefused(draft: Draft): void {
  if (draft.template().spec?.hostNetwork !== true) return;
  draft.remove([...TEMPLATE, 'spec', 'hostNetwork'], {
    code: 'C012',
    level: 'error',
    what: 'removed',
    why: 'Every pod uses the same ports, so two on one node would clash, and workers would be reachable past the proxy',
    wayOut: 'Reach what listens on the node by its address (fieldRef status.hostIP), and clients through the Service.',
  });
}

/** Annotations of a template that speak about the Deployment and its containers. */
const OLD_ANNOTATIONS: Record<string, Omit<Said, 'code' | 'level' | 'what'>> = {
  'kubectl.kubernetes.io/restartedAt': {
    why: 'kubectl rollout restart has written it',
    wayOut: 'Nothing to do.',
  },
  'kubectl.kubernetes.io/default-container': {
    why: 'Corelane sets it to worker-0',
    wayOut: 'Nothing to do.',
  },
};

/** Labels that Helm gives to what it manages, in templates too. */
const HELM_LABELS: Record<string, string | undefined> = {
  'helm.sh/chart': undefined,
  'app.kubernetes.io/managed-by': 'Helm',
};

/** Takes labels and annotations out that speak about the Deployment. */
export function removeOldMetadata(draft: Draft): void {
  const labels = draft.template().metadata?.labels ?? {};
  const ofHelm = Object.entries(HELM_LABELS).filter(
    ([key, value]) => labels[key] !== undefined && (value ?? labels[key]) === labels[key],
  );
  draft.removeAll(
    ofHelm.map(([key]) => [...TEMPLATE, 'metadata', 'labels', key]),
    {
      code: 'C016',
      level: 'info',
      what: 'left out',
      why: 'Helm does not manage the new pods',
      wayOut: 'Nothing to do.',
    },
  );

  const annotations = draft.template().metadata?.annotations ?? {};
  for (const [key, said] of Object.entries(OLD_ANNOTATIONS)) {
    if (annotations[key] === undefined) continue;
    const path = [...TEMPLATE, 'metadata', 'annotations', key];
    draft.remove(path, { ...said, code: 'C016', level: 'info', what: 'removed' });
  }
}

/**
 * Takes labels out by which old objects would select the new pods, and lets affinities that meant the old pods mean the
 * new ones.
 * @param keys labels by which the Deployment and its Services select
 * @param name of the RenderService
 */
export function moveLabels(draft: Draft, keys: string[], name: string): void {
  const before = draft.template().metadata?.labels ?? {};
  const paths = Object.keys(before)
    .filter((key) => keys.includes(key) || key.startsWith('corelane.dev/'))
    .map((key): Path => [...TEMPLATE, 'metadata', 'labels', key]);
  draft.removeAll(paths, {
    code: 'C010',
    level: 'info',
    what: 'taken out of the labels of the pods',
    why: 'By them the old Service would send requests to the new pods, on a port where nobody listens, and the old PodDisruptionBudget would count them',
    wayOut: `What else selects by them (NetworkPolicies, dashboards) should select by ${LABEL_RENDER_SERVICE}: ${name}.`,
  });
  const after = draft.template().metadata?.labels ?? {};
  for (const { path, value } of leaves(draft.template().spec, [...TEMPLATE, 'spec'])) {
    if (path.at(-1) !== 'labelSelector' || !isRecord(value)) continue;
    const selector = value as V1LabelSelector;
    if (!matches(selector, before) || matches(selector, after)) continue;
    draft.replace(path, { matchLabels: { [LABEL_RENDER_SERVICE]: name } });
    draft.say(path, {
      code: 'C010',
      level: 'info',
      what: `selects by ${LABEL_RENDER_SERVICE}: ${name} now`,
      why: 'It meant the pods of the Deployment itself',
      wayOut: 'Nothing to do.',
    });
  }
}

/** What the API server writes where nobody has said anything: last step of the path, and the value. */
const DEFAULTS: [key: RegExp, value: unknown][] = [
  [/^terminationMessagePath$/, '/dev/termination-log'],
  [/^terminationMessagePolicy$/, 'File'],
  [/^dnsPolicy$/, 'ClusterFirst'],
  [/^restartPolicy$/, 'Always'],
  [/^schedulerName$/, 'default-scheduler'],
  [/^terminationGracePeriodSeconds$/, 30],
  [/^protocol$/, 'TCP'],
  [/^defaultMode$/, 420],
  [/^(failureThreshold)$/, 3],
  [/^periodSeconds$/, 10],
  [/^(successThreshold|timeoutSeconds)$/, 1],
  [/^scheme$/, 'HTTP'],
];

/** Pull policies that follow from the tag: Always for "latest", IfNotPresent for all others. */
function pullPolicies(draft: Draft): Path[] {
  const spec = draft.template().spec;
  return (['containers', 'initContainers'] as const).flatMap((list) =>
    (spec?.[list] ?? []).flatMap(({ image = '', imagePullPolicy }, index) => {
      const isLatest = /(^|\/)[^:@/]+(:latest)?$/.test(image);
      const isUsual = imagePullPolicy === (isLatest ? 'Always' : 'IfNotPresent');
      return isUsual ? [[...TEMPLATE, 'spec', list, index, 'imagePullPolicy']] : [];
    }),
  );
}

/** Takes out what an API server has added, for an object that comes from one. */
export function removeDefaults(draft: Draft): void {
  const all = [...leaves(draft.template(), TEMPLATE)].filter(({ path, value }) => {
    const key = String(path.at(-1));
    const isSidecar = key === 'restartPolicy' && path.includes('initContainers');
    const isFieldRef = key === 'apiVersion' && path.at(-2) === 'fieldRef' && value === 'v1';
    return isFieldRef || (!isSidecar && DEFAULTS.some(([name, usual]) => name.test(key) && value === usual));
  });
  const paths = [...all.map(({ path }) => path), ...pullPolicies(draft)];
  const { serviceAccount, serviceAccountName } = draft.template().spec ?? {};
  if (serviceAccount !== undefined && serviceAccount === serviceAccountName)
    paths.push([...TEMPLATE, 'spec', 'serviceAccount']);
  draft.removeAll(paths, {
    code: 'C016',
    level: 'info',
    what: 'left out',
    why: 'The API server has added these values, and does so again',
    wayOut: 'Nothing to do.',
  });
}
