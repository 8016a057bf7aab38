/**
 * What the API server lets in can be planned: a throw here would be tried again for ever, and no Deployment would come.
 */
import { parseRenderService } from '../../../src/api/resource.ts';
import { desiredObjects } from '../../../src/plan/index.ts';
import { goodResources } from '../../api/bad-resources.ts';
import { podTemplate } from '../../support/world.ts';

test.each(goodResources.map((good) => [good.what, good] as const))('%s', (_what, { spec, name = 'shop' }) => {
  const metadata = { name, namespace: 'default', uid: 'u', generation: 1, resourceVersion: '1' };
  const resource = { apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService', metadata };
  const parsed = parseRenderService({ ...resource, spec: { template: podTemplate(), ...(spec as object) } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const planned = desiredObjects(
    parsed.renderService,
    { image: 'sidecar:1' },
    { namespace: 'corelane', monitoring: [] },
  );
  expect(planned.map(({ kind }) => kind)).toContain('Deployment');
});
