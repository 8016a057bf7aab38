/** Fields of a Deployment beside its pod template. */
import type { V1Deployment } from '@kubernetes/client-node';
import type { Draft, Said } from './draft.ts';
import { isRecord } from './manifests.ts';

/** Annotations and labels that tools write for themselves, about the object that they made. */
const OF_TOOLS =
  /^(kubectl\.kubernetes\.io\/last-applied-configuration|deployment\.kubernetes\.io\/|meta\.helm\.sh\/|argocd\.argoproj\.io\/tracking-id|kustomize\.toolkit\.fluxcd\.io\/|helm\.toolkit\.fluxcd\.io\/|autoscaling\.alpha\.kubernetes\.io\/)/;
const MANAGED_BY = 'app.kubernetes.io/managed-by';

/** Annotations by which programs find the Deployments that they write: they know no RenderService. */
const OF_DEPLOYMENTS: [pattern: RegExp, said: Pick<Said, 'why' | 'wayOut'>][] = [
  [
    /^downscaler\//,
    {
      why: 'kube-downscaler looks at Deployments, and what it writes into one of a RenderService is taken back',
      wayOut:
        'Scale the RenderService by a schedule: a CronJob with kubectl scale renderservice, or a cron trigger of KEDA (docs/gitops.md#kube-downscaler).',
    },
  ],
  [
    /^((configmap|secret)\.)?reloader\.stakater\.com\//,
    {
      why: 'Reloader looks for it on Deployments and on pod templates, and does not know a RenderService',
      wayOut:
        'Name the ConfigMaps and Secrets in annotations of spec.template, and run Reloader with --reload-strategy=annotations (docs/gitops.md#reloader).',
    },
  ],
  [
    /^keel\.sh\//,
    {
      why: 'Keel writes images into Deployments, and what it writes into one of a RenderService is taken back',
      wayOut: 'Let an image updater write the RenderService in Git (docs/gitops.md#image-updaters).',
    },
  ],
];

const left = (why: string): Said => ({ code: 'C016', level: 'info', what: 'left out', why, wayOut: 'Nothing to do.' });

/** Fields of the metadata and the status, which the cluster or a tool writes. */
export function metadataFields(draft: Draft): void {
  const { metadata, status, ...rest } = draft.source.value;
  const own = isRecord(metadata) ? metadata : {};
  const written = Object.keys(own).filter((key) => !['name', 'namespace', 'labels', 'annotations'].includes(key));
  const fields = [...written.map((key) => `metadata.${key}`), ...(status === undefined ? [] : ['status'])];
  const unknown = Object.keys(rest).filter((key) => !['apiVersion', 'kind', 'spec'].includes(key));
  sayAll(draft, fields, left('The cluster writes it'));
  sayAll(draft, unknown, { ...left('No field of a Deployment'), level: 'warning' });
  const annotations = isRecord(own.annotations) ? Object.keys(own.annotations) : [];
  for (const [pattern, said] of OF_DEPLOYMENTS) {
    const keys = annotations.filter((key) => pattern.test(key));
    draft.removeAll(
      keys.map((key) => ['metadata', 'annotations', key]),
      { code: 'C016', level: 'decide', what: 'left out', ...said },
    );
  }
  const labels = isRecord(own.labels) ? own.labels : {};
  const isHelm = labels[MANAGED_BY] === 'Helm';
  draft.removeAll(
    [
      ...annotations.filter((key) => OF_TOOLS.test(key)).map((key) => ['metadata', 'annotations', key]),
      ...Object.keys(labels)
        .filter((key) => OF_TOOLS.test(key) || (key === MANAGED_BY && isHelm) || key === 'helm.sh/chart')
        .map((key) => ['metadata', 'labels', key]),
    ],
    left('The tool that made the Deployment has written it for itself'),
  );
}

function sayAll(draft: Draft, paths: string[], said: Said): void {
  const [first, ...also] = paths;
  if (first !== undefined) draft.say(first, also.length > 0 ? { ...said, also } : said);
}

/** Fields of the spec that have steps of their own. */
const ELSEWHERE = ['template', 'replicas', 'selector', 'strategy'];
/** Fields that go over, with what they are unless given. */
const ROLLING: Record<string, unknown> = { minReadySeconds: 0, progressDeadlineSeconds: 600 };

/** What became of each field of the spec. */
export function specFields(draft: Draft, { spec }: V1Deployment, isFromCluster: boolean): void {
  const rolling: Record<string, unknown> = isEmpty(spec?.strategy) ? {} : strategy(draft, spec, isFromCluster);
  for (const [key, value] of Object.entries(spec ?? {})) {
    const isMoved = Object.hasOwn(ROLLING, key) && value !== ROLLING[key] && !isEmpty(value);
    if (isMoved) rolling[key] = value;
    else if (isEmpty(value)) draft.say(`spec.${key}`, left('Empty, it says nothing'));
    else if (!ELSEWHERE.includes(key)) draft.say(`spec.${key}`, otherField(key));
  }
  if (Object.keys(rolling).length > 0) draft.set('rollout', { rolling });
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || (isRecord(value) && Object.keys(value).length === 0);
}

function otherField(key: string): Said {
  // A field may be called constructor.
  const known = Object.hasOwn(OTHER_FIELDS, key) ? OTHER_FIELDS[key] : undefined;
  return known ?? { ...left('A RenderService has no such field'), level: 'warning' };
}

const OTHER_FIELDS: Record<string, Said> = {
  minReadySeconds: left('It is 0 unless given'),
  progressDeadlineSeconds: left('It is 600 unless given'),
  revisionHistoryLimit: left('Corelane keeps two old revisions'),
  paused: {
    code: 'C016',
    level: 'decide',
    what: 'left out',
    why: 'A RenderService cannot be paused: a change reaches its pods',
    wayOut: 'Apply it when it may.',
  },
};

function strategy(draft: Draft, spec: V1Deployment['spec'], isFromCluster: boolean): Record<string, unknown> {
  const { type, rollingUpdate, ...rest } = spec?.strategy ?? {};
  sayAll(
    draft,
    Object.keys(rest).map((key) => `spec.strategy.${key}`),
    { ...left('A RenderService has no such field'), level: 'warning' },
  );
  if (type === 'Recreate') {
    draft.say('spec.strategy', {
      code: 'C016',
      level: 'decide',
      what: 'Recreate is left out',
      why: 'Pods of a RenderService are replaced one after the other, old and new beside each other',
      wayOut:
        'Nothing if two versions may run at a time. Else rollout.rolling: { maxSurge: 0, maxUnavailable: 100% } comes near to it.',
    });
    return {};
  }
  if (type !== undefined) draft.say('spec.strategy.type', left('RollingUpdate is the only one'));
  const given = Object.entries(rollingUpdate ?? {}).filter(([, value]) => value !== null);
  const isUsual = given.every(([, value]) => value === '25%');
  if (given.length === 0) return {};
  if (isFromCluster && isUsual) {
    draft.say(
      'spec.strategy.rollingUpdate',
      left('The API server has added it; Corelane takes no pod away before a new one is ready'),
    );
    return {};
  }
  const values = Object.fromEntries(given);
  const { maxSurge, maxUnavailable, ...others } = values;
  sayAll(
    draft,
    Object.keys(others).map((key) => `spec.strategy.rollingUpdate.${key}`),
    { ...left('A RenderService has no such field'), level: 'warning' },
  );
  return { ...(maxSurge !== undefined && { maxSurge }), ...(maxUnavailable !== undefined && { maxUnavailable }) };
}
