/** The page by which a canary is judged. */
import type { Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { readSides, SIDES_PAGE, type SidesPage } from '../../operator/src/pods/side-counts.ts';

/** What a pod has counted of both sides. */
export async function page(pod: Pod): Promise<SidesPage> {
  const answer = await pod.get(SIDES_PAGE, { port: PORTS.stats });
  const read = readSides(answer.body);
  if (!read) throw new Error(`no page of sides: ${answer.status} ${answer.body}`);
  return read;
}
