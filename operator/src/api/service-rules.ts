/** Rules between the fields of `spec.service`. */
import { isOwnLabel } from './labels.ts';
import { LABEL_INSTANCE, LABEL_MANAGED_BY } from './names.ts';
import type { RenderServiceSpec } from './spec.ts';
import type { SpecRule } from './spec-rule.ts';

type Field = keyof RenderServiceSpec['service'];
type Type = RenderServiceSpec['service']['type'];

/** `field` is for these types of Service only. */
function onlyWith(field: Field, ...types: Type[]): SpecRule {
  return {
    path: ['service', field],
    message: `works with service.type ${types.join(' or ')} only; leave it out, or set that type`,
    cel: `!has(self.service.${field}) || self.service.type in ['${types.join("', '")}']`,
    holds: ({ service }) => service[field] === undefined || types.includes(service.type),
  };
}

/** HTTP/2 in clear text, in the words of Kubernetes and of Istio. Pods do not speak it (docs/adr/0042-http2.md). */
export const HTTP2_PROTOCOLS = ['kubernetes.io/h2c', 'http2'];

export const serviceRules: SpecRule[] = [
  onlyWith('externalTrafficPolicy', 'NodePort', 'LoadBalancer'),
  onlyWith('loadBalancerClass', 'LoadBalancer'),
  onlyWith('loadBalancerSourceRanges', 'LoadBalancer'),
  {
    path: ['service', 'appProtocol'],
    message: `must not be ${HTTP2_PROTOCOLS.join(' or ')}: pods speak HTTP/1.1, and every request over HTTP/2 would fail; use http, or leave it out`,
    cel: `!has(self.service.appProtocol) || !(self.service.appProtocol in ['${HTTP2_PROTOCOLS.join("', '")}'])`,
    holds: ({ service }) => !HTTP2_PROTOCOLS.includes(service.appProtocol ?? ''),
  },
  {
    path: ['service', 'ipFamilies'],
    message:
      'must name both families with ipFamilyPolicy PreferDualStack or RequireDualStack, else one; name as many, or leave ipFamilies out',
    // The API server would add the second one, and the Service would be another one than was asked for.
    cel: "!has(self.service.ipFamilies) || (has(self.service.ipFamilyPolicy) && self.service.ipFamilyPolicy != 'SingleStack' ? self.service.ipFamilies.size() == 2 && self.service.ipFamilies[0] != self.service.ipFamilies[1] : self.service.ipFamilies.size() == 1)",
    holds: ({ service: { ipFamilies, ipFamilyPolicy = 'SingleStack' } }) =>
      ipFamilies === undefined ||
      (new Set(ipFamilies).size === ipFamilies.length &&
        ipFamilies.length === (ipFamilyPolicy === 'SingleStack' ? 1 : 2)),
  },
  {
    path: ['service', 'labels'],
    message: `${LABEL_MANAGED_BY}, ${LABEL_INSTANCE} and labels that begin with "corelane.dev/" are set by Corelane; remove them`,
    cel: `!has(self.service.labels) || self.service.labels.all(k, !(k in ['${LABEL_MANAGED_BY}', '${LABEL_INSTANCE}']) && !k.startsWith('corelane.dev/'))`,
    holds: ({ service }) => !Object.keys(service.labels ?? {}).some(isOwnLabel),
  },
];
