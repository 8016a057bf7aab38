/** Pages of applications that answer with statuses below 200. */
import type { Pod } from '../../e2e/harness/engine/pod.ts';

/** Status and reason of each. */
export const statuses = async (pod: Pod, paths: string[]) => {
  const answers = await Promise.all(paths.map((path) => pod.get(path)));
  return answers.map(({ status, headers }) => [status, headers['x-corelane-error']].join(' ').trim());
};
