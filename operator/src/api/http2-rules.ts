/** Rules about HTTP/2: who says that it is spoken, and what it takes. */
import { quantityOf } from './scalars.ts';
import type { SpecRule } from './spec-rule.ts';

/** With less of it nginx would have no room for half heads (render/model/budget.ts; a test looks). */
export const HTTP2_MEMORY_MIN = '128Mi';

const LIMIT = 'self.sidecar.nginx.memoryLimit';
/** In clear text, in the words of Kubernetes and of Istio. */
const WORDS = ['kubernetes.io/h2c', 'http2'];

export const http2Rules: SpecRule[] = [
  {
    path: ['service', 'appProtocol'],
    message: 'the pods do not speak it; set http2.enabled: true, or leave it out',
    cel: `!has(self.service.appProtocol) || !(self.service.appProtocol in ['${WORDS.join("', '")}']) || self.http2.enabled`,
    holds: ({ service, http2 }) => http2.enabled || !WORDS.includes(service.appProtocol ?? ''),
  },
  {
    path: ['sidecar', 'nginx', 'memoryLimit'],
    message: `must be at least ${HTTP2_MEMORY_MIN} with http2.enabled: a connection may cost more than one of HTTP/1 (docs/edge.md); make it larger, or leave HTTP/2 off`,
    cel: `!self.http2.enabled || !isQuantity(${LIMIT}) || quantity(${LIMIT}).compareTo(quantity('${HTTP2_MEMORY_MIN}')) >= 0`,
    holds: ({ http2, sidecar }) =>
      !http2.enabled || quantityOf(sidecar.nginx.memoryLimit) >= quantityOf(HTTP2_MEMORY_MIN),
  },
];
