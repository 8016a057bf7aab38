/** Rules between the fields of `spec.service`. */
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

/** Labels that Corelane sets on each of its objects. */
const isOurs = (key: string) => key === LABEL_MANAGED_BY || key === LABEL_INSTANCE || key.startsWith('corelane.dev/');

export const serviceRules: SpecRule[] = [
  onlyWith('externalTrafficPolicy', 'NodePort', 'LoadBalancer'),
  onlyWith('loadBalancerClass', 'LoadBalancer'),
  onlyWith('loadBalancerSourceRanges', 'LoadBalancer'),
  {
    path: ['service', 'labels'],
    message: `${LABEL_MANAGED_BY}, ${LABEL_INSTANCE} and labels that begin with "corelane.dev/" are set by Corelane; remove them`,
    cel: `!has(self.service.labels) || self.service.labels.all(k, !(k in ['${LABEL_MANAGED_BY}', '${LABEL_INSTANCE}']) && !k.startsWith('corelane.dev/'))`,
    holds: ({ service }) => !Object.keys(service.labels ?? {}).some(isOurs),
  },
];
