/** Hashed files of pods of several revisions. */
import type { Answer, Pod } from '../../e2e/harness/engine/pod.ts';
import { ASSETS } from '../../e2e/harness/engine/revisions.ts';

/** Of each revision. */
export const SPEC = { workersPerPod: 1, assets: ASSETS };

/** A file that one revision has, asked for in a pod. */
export const fileOf = (pod: Pod, name: string, folder = '/_next/static/', call = {}): Promise<Answer> =>
  pod.get(`${folder}${name}.js`, call);
