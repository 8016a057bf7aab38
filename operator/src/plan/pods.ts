/** Which pods there are to be: those that this operator makes of a spec, or those of a revision that there is. */
import type { V1PodTemplateSpec } from '@kubernetes/client-node';
import { ANNOTATION_CONFIG, ANNOTATION_MADE_OF, ANNOTATION_RENEWED, LABEL_REVISION } from '../api/names.ts';
import type { RenderService } from '../api/resource.ts';
import { configMap } from './configmap.ts';
import { isSameInput, type Made, madeText } from './made.ts';
import { contentHash, type PlannedObject } from './objects.ts';
import { podTemplate } from './pod-template.ts';
import type { SidecarImage } from './proxies.ts';

/** The pods that are asked for. */
export interface Pods {
  /** Undefined for those of a version that had one Deployment for all revisions. */
  revision: string | undefined;
  template: V1PodTemplateSpec;
  /** The ConfigMap with their configuration; pods that stay as they are have theirs. */
  config?: PlannedObject;
  /** Annotations of the Deployment: what they were made of. */
  annotations: Record<string, string>;
}

/** A revision that there is, and whose pods could still start. */
export interface PodsBefore {
  /** Annotations of the Deployment. */
  annotations: Record<string, string>;
  made: Made;
  /** Whether it has pods. */
  lives: boolean;
}

export type PodsChange =
  | 'made' // for the first time, or because the user has changed something
  | 'same' // this operator makes the very same pods
  | 'kept' // it would make others, and leaves them as they are
  | 'renewed'; // it makes others although the user has changed nothing

/**
 * What this operator makes of a spec, with nothing to remember. A revision has its name from what its pods are, to the
 * byte: configuration and sidecar image, too, by the name of the one and as part of the other.
 */
export function freshPods(renderService: RenderService, sidecar: SidecarImage): Required<Pods> & { revision: string } {
  const config = configMap(renderService);
  const made = podTemplate(renderService, config.metadata.name, sidecar);
  const revision = revisionHash(made);
  const labels = { ...made.metadata?.labels, [LABEL_REVISION]: revision };
  return { revision, template: { ...made, metadata: { ...made.metadata, labels } }, config, annotations: {} };
}

/** Of a pod template but for the label that has it. Pods of all versions stay what they are by it: it never changes. */
function revisionHash({ metadata, spec }: V1PodTemplateSpec): string {
  const { [LABEL_REVISION]: _unused, ...labels } = metadata?.labels ?? {};
  return contentHash({ metadata: { ...metadata, labels }, spec });
}

/** Whether a memory is that of this revision: anybody who may write a Deployment can give it another one's. */
export function isMemoryOf({ template }: Made, revision: string | undefined): boolean {
  return revisionOf(template) === revision && (revision === undefined || revisionHash(template) === revision);
}

/**
 * Decides, and remembers. Pods stay byte for byte until the user changes something that other pods are made of, or
 * until `mayRenew` says so. What he changes back to is the revision that there was, if that still has pods.
 * @param written the user's spec as the API server has it
 * @param before revisions that there are, the one that was asked for last first
 * @param mayRenew asked only where it matters; the time to remember, or nothing
 */
export function choosePods(
  renderService: RenderService,
  written: unknown,
  sidecar: SidecarImage,
  before: PodsBefore[],
  mayRenew: () => string | undefined,
): { pods: Pods; change: PodsChange } {
  const fresh = freshPods(renderService, sidecar);
  const freshHash = contentHash(fresh.template);
  const isFresh = ({ made }: PodsBefore) => contentHash(made.template) === freshHash;
  const isOfInput = ({ made }: PodsBefore) =>
    contentHash(made.spec) === contentHash(written) || isSameInput(made, renderService);
  const remember = (renewed?: string): Record<string, string> => {
    const text = madeText({ spec: written, template: fresh.template });
    return { ...(text && { [ANNOTATION_MADE_OF]: text }), ...(renewed && { [ANNOTATION_RENEWED]: renewed }) };
  };
  const [last, ...earlier] = before;
  if (last && isFresh(last)) {
    const annotations = isOfInput(last) ? memoryOf(last) : remember(last.annotations[ANNOTATION_RENEWED]);
    return { pods: { ...fresh, annotations }, change: 'same' };
  }
  if (last && isOfInput(last)) {
    const now = mayRenew();
    if (now !== undefined) return { pods: { ...fresh, annotations: remember(now) }, change: 'renewed' };
    return { pods: { ...existing(last), annotations: memoryOf(last) }, change: 'kept' };
  }
  const back = earlier.some(isFresh) ? undefined : earlier.find((one) => one.lives && isOfInput(one));
  if (!back) return { pods: { ...fresh, annotations: remember() }, change: 'made' };
  // Whatever turn has made it: this time it is the user who asks for it.
  const { [ANNOTATION_RENEWED]: _unused, ...annotations } = memoryOf(back);
  return { pods: { ...existing(back), annotations }, change: 'kept' };
}

function existing({ made: { template } }: PodsBefore): Pick<Pods, 'revision' | 'template'> {
  return { revision: revisionOf(template), template };
}

/** Revision of a pod template; undefined where all revisions had one Deployment. */
export function revisionOf({ metadata }: V1PodTemplateSpec): string | undefined {
  return metadata?.labels?.[LABEL_REVISION];
}

/** What a Deployment remembers of what its pods were made of. */
export function memoryOf({ annotations }: Pick<PodsBefore, 'annotations'>): Record<string, string> {
  const names = [ANNOTATION_MADE_OF, ANNOTATION_RENEWED];
  return Object.fromEntries(Object.entries(annotations).filter(([name]) => names.includes(name)));
}

/**
 * The same annotations with a time of the last turn that has been: somebody may have written another one, or had a
 * clock that is ahead. It would be the time of pods that are still to come.
 */
export function withPastTurn(annotations: Record<string, string>, now: string): Record<string, string> {
  const renewed = annotations[ANNOTATION_RENEWED];
  if (renewed === undefined || Date.parse(renewed) <= Date.parse(now)) return annotations;
  return { ...annotations, [ANNOTATION_RENEWED]: now };
}

/** Name of the ConfigMap that a template's pods mount. */
export function configNameOf({ metadata }: V1PodTemplateSpec): string {
  return metadata?.annotations?.[ANNOTATION_CONFIG] ?? '';
}
