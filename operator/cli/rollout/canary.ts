/** `corelane rollout promote`, `abort` and `retry`: facts about the canary that there is, as annotations. */
import { ANNOTATION_ABORT, ANNOTATION_PROMOTE, ANNOTATION_RETRY } from '../../src/api/names.ts';
import { factText } from '../../src/rollout/canary-facts.ts';
import { UsageError } from '../usage.ts';
import type { Resource } from './service.ts';

/** What is to be written, and said of it. */
export interface Writing {
  /** null: it goes. */
  annotations: Record<string, string | null>;
  text: string;
}

/** Step of now, or all. @throws UsageError where there is nothing to promote */
export function promotion(resource: Resource, { all }: { all: boolean }): Writing {
  const { phase, canary } = rolloutOf(resource);
  if (phase === 'Aborting' || phase === 'Aborted')
    throw new UsageError(`canary ${canary.revision} is aborted: corelane rollout retry ${resource.metadata.name}`);
  const { revision, attempt, step, steps } = canary;
  // Before its first step it has nothing to be promoted from but all of them.
  const isAll = all || step === 0;
  if (step === 0 && !all) throw new UsageError('the canary is not at its first step yet; --all passes all of them');
  const fact = factText({ revision, attempt, ...(!isAll && { step }) });
  const what = isAll ? 'all steps' : `step ${step} of ${steps}`;
  return told(ANNOTATION_PROMOTE, fact, `canary ${revision}: ${what} passed`);
}

/** @throws UsageError where there is no canary */
export function abortion(resource: Resource): Writing {
  const { canary } = rolloutOf(resource);
  return told(ANNOTATION_ABORT, canary.revision, `canary ${canary.revision} gets nothing any more, and its pods go`);
}

/** @throws UsageError where nothing was aborted */
export function retrial(resource: Resource): Writing {
  const { phase, canary } = rolloutOf(resource);
  if (phase !== 'Aborted') throw new UsageError(`canary ${canary.revision} is not aborted`);
  const { revision, attempt } = canary;
  const again = told(ANNOTATION_RETRY, factText({ revision, attempt: attempt + 1 }), `canary ${revision} begins anew`);
  // What names it would abort it again.
  const isNamed = resource.metadata.annotations?.[ANNOTATION_ABORT] !== undefined;
  return { ...again, annotations: { ...again.annotations, ...(isNamed && { [ANNOTATION_ABORT]: null }) } };
}

function rolloutOf({ metadata, status }: Resource) {
  const { canary, phase } = status?.rollout ?? {};
  if (!canary) throw new UsageError(`${metadata.name} has no canary`);
  return { canary, phase };
}

function told(annotation: string, fact: string, text: string): Writing {
  return { annotations: { [annotation]: fact }, text: `${text} (${annotation}: ${fact})` };
}
