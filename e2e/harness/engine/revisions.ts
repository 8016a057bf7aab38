/** Pods of several revisions that live beside each other: a fleet in the middle of changes. */

import { deploymentIdOf } from '../../../operator/src/api/deployment-id.ts';
import { ANNOTATION_DEPLOYMENT } from '../../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../../operator/src/api/spec.ts';
import { APP_FILES, AppFiles } from './app-files.ts';
import { Fleet } from './fleet.ts';
import { type Answer, type Pod, type PodOptions, until, type WorkerOptions } from './pod.ts';

type Input = Partial<RenderServiceSpecInput>;
type Options = WorkerOptions & PodOptions;

/** Of yesterday, of today, and the one that comes. */
export const OLD = 'aabbccddee';
export const NOW = '7f3a9c21d0';
export const NEXT = '19be04aa3c';

/** Hashed files, as a framework has them; and such that are none of it. */
export const ASSETS: Input['assets'] = [
  { path: '/_next/static/', from: `${APP_FILES}/static`, immutable: true },
  { path: '/only/', from: `${APP_FILES}/static`, immutable: true, missing: 'NotFound' },
  { path: '/public/', from: `${APP_FILES}/static` },
];

/** Files of a revision: one that only it has, and one that all have in other words. */
function filesOf(revision: string): AppFiles {
  return new AppFiles({ [`static/${revision}.js`]: revision, 'static/all.js': `all of ${revision}` });
}

/** A template whose deployment calls itself so. */
export function calling(id: string): Pick<RenderServiceSpecInput, 'template'> {
  const containers = [{ name: 'worker', image: 'not-used' }];
  return { template: { metadata: { annotations: { [ANNOTATION_DEPLOYMENT]: id } }, spec: { containers } } };
}

export class Revisions {
  readonly fleet: Fleet;
  readonly #files: AppFiles[] = [];
  readonly #of = new Map<Pod, string>();

  private constructor(fleet: Fleet) {
    this.fleet = fleet;
  }

  /** A pod of each of these, which know each other; `pods`: options of them all. */
  static async start(
    { pods = {}, ...input }: Input & { pods?: Options },
    ...wanted: (string | [revision: string, input: Input])[]
  ): Promise<Revisions> {
    const all = new Revisions(await Fleet.start(0, input));
    try {
      const each = wanted.map((one): [string, Input] =>
        typeof one === 'string' ? [one, input] : [one[0], { ...input, ...one[1] }],
      );
      await Promise.all(each.map(([revision, own]) => all.add(revision, own, pods)));
      await all.untilKnown();
    } catch (error) {
      await all.stop();
      throw error;
    }
    return all;
  }

  /** One more pod. */
  async add(revision: string, input: Input, options: Options = {}): Promise<Pod> {
    const files = filesOf(revision);
    this.#files.push(files);
    const pod = await this.fleet.add(input, {
      ...options,
      options: [...files.options, ...(options.options ?? [])],
      revision,
    });
    this.#of.set(pod, revision);
    return pod;
  }

  get pods(): Pod[] {
    return this.fleet.pods;
  }

  /** The first pod of a revision. */
  of(revision: string): Pod {
    return this.pods.find((pod) => this.#of.get(pod) === revision) as Pod;
  }

  /** Waits until each pod leads requests to every revision by its name. */
  async untilKnown(ids?: string[]): Promise<void> {
    await this.fleet.untilAllKnown();
    const names = ids ?? [...new Set(this.pods.map((pod) => deploymentIdOf(pod.spec) ?? this.#of.get(pod) ?? ''))];
    for (const pod of this.pods) {
      for (const id of names) {
        await until(`${this.#of.get(pod)} knows ${id}`, async () => {
          const { body } = await pod.get(`/?id=known-${id}`, { headers: { 'x-deployment-id': id } });
          return this.#deploymentOf(body) === id;
        });
      }
    }
  }

  /** As the worker calls itself that has rendered an answer. */
  #deploymentOf(body: string): string | undefined {
    return body.startsWith('{') ? JSON.parse(body).deployment : undefined;
  }

  /** The deployment whose worker has rendered an answer. */
  renderedBy(answer: Answer): string | undefined {
    return answer.status === 200 ? this.#deploymentOf(answer.body) : undefined;
  }

  /** Requests that workers of all pods have begun. */
  begun(id?: string): number {
    const filter = { event: 'begin' as const, ...(id !== undefined && { id }) };
    return this.pods.reduce((sum, pod) => sum + pod.events(filter).length, 0);
  }

  async stop(): Promise<void> {
    await this.fleet.stop();
    for (const files of this.#files) files.remove();
  }
}
