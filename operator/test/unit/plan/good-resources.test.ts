/**
 * What the API server lets in can be planned: a throw here would be tried again for ever, and no Deployment would come.
 * And what its pods were made of is believed again: else another version of the operator would make them anew.
 */
import { parseRenderService } from '../../../src/api/resource.ts';
import { desiredObjects } from '../../../src/plan/index.ts';
import { madeText, readMade } from '../../../src/plan/made.ts';
import { freshPods, isMemoryOf } from '../../../src/plan/pods.ts';
import { goodResources } from '../../api/bad-resources.ts';
import { podTemplate } from '../../support/world.ts';

test.each(goodResources.map((good) => [good.what, good] as const))('%s', (_what, { spec, name = 'shop' }) => {
  const metadata = { name, namespace: 'default', uid: 'u', generation: 1, resourceVersion: '1' };
  const resource = { apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService', metadata };
  const parsed = parseRenderService({ ...resource, spec: { template: podTemplate(), ...(spec as object) } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const sidecar = { image: 'sidecar:1' };
  const planned = desiredObjects(parsed.renderService, sidecar, { namespace: 'corelane', monitoring: [] });
  expect(planned.map(({ kind }) => kind)).toContain('Deployment');
  const { revision, template } = freshPods(parsed.renderService, sidecar);
  const made = readMade(madeText({ spec: parsed.renderService.spec, template }));
  expect(made && isMemoryOf(made, revision)).toBe(true);
});
