/** What stands around a RenderService, out of the manifests beside it. */

import { PARTS, type ReadKind, wrongParts } from '../check/parts.ts';
import type { Surroundings } from '../check/workload.ts';
import { unknownSurroundings } from '../check/workload.ts';
import { KIND, LABEL_RENDER_SERVICE } from '../src/api/names.ts';
import { withoutMadeByKeda } from './made-by-keda.ts';
import type { Manifest } from './manifests.ts';
import { backends } from './related.ts';

/** Of manifests that cannot be read nothing is known. */
export function surroundingsOf(renderService: Manifest, others: Manifest[]): Surroundings {
  const around = withoutMadeByKeda(others);
  const of = <T>(kind: ReadKind) =>
    around
      .filter((one) => one.kind === kind && wrongParts(kind, one.value).length === 0)
      .map(({ value }) => value as T);
  const { name } = renderService;
  const limitRanges: Surroundings['limitRanges'] = of('LimitRange');
  const services: Surroundings['services'] = of('Service');
  const ingresses: Surroundings['ingresses'] = of('Ingress');
  return {
    ...unknownSurroundings(),
    services: services.filter(({ spec }) => spec?.selector?.[LABEL_RENDER_SERVICE] === name),
    ingresses: ingresses.filter((ingress) => backends(ingress).includes(name)),
    autoscalers: of('HorizontalPodAutoscaler'),
    scaledObjects: of('ScaledObject'),
    verticalAutoscalers: of('VerticalPodAutoscaler'),
    claims: of('PersistentVolumeClaim'),
    configMaps: of('ConfigMap'),
    ...(limitRanges && limitRanges.length > 0 && { limitRanges }),
  };
}

/** Whether something is a RenderService, of whatever version. */
export function isRenderService({ kind, value }: Manifest): boolean {
  return kind === KIND && String(value.apiVersion).startsWith('corelane.dev/') && Object.hasOwn(PARTS, kind);
}
