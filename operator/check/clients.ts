/** C021: whether Corelane can know who the client is, as far as the RenderService alone tells. */
import ipaddr from 'ipaddr.js';
import type { Finding } from './finding.ts';
import type { Rule, Workload } from './workload.ts';

/** Load balancers that pass requests on and not connections, or keep the address of the client in another way. */
const NAMES_CLIENT = /http|preserve_client_ip/i;
/** From here Google's load balancers connect to pods of any Service. */
const GOOGLE_BALANCERS = '35.191.0.0/16';

function isPublic(range: string): boolean {
  return ipaddr.isValidCIDR(range) && ipaddr.parseCIDR(range)[0].range() === 'unicast';
}

function* trust({ spec, object }: Workload): Generator<Finding> {
  const { forwarded, service } = spec;
  const all = forwarded.trust.findIndex((range) => range.endsWith('/0'));
  if (all >= 0) {
    yield {
      code: 'C021',
      level: 'warning',
      object,
      path: `spec.forwarded.trust[${all}]`,
      what: `${forwarded.trust[all]} is every address`,
      why: 'A client is believed like a proxy: it chooses its own address, and with it its place in limits.perClient',
      wayOut: 'List the ranges of your proxies only.',
    };
  }
  const fromInside = service.type === 'ClusterIP' && !forwarded.trust.includes(GOOGLE_BALANCERS);
  if (!fromInside || forwarded.trust.length === 0 || !forwarded.trust.every(isPublic)) return;
  yield {
    code: 'C021',
    level: 'warning',
    object,
    path: 'spec.forwarded.trust',
    what: 'all of these ranges are public, and the Service is reached from inside the cluster only',
    why: 'An ingress in the cluster has a private address and is not believed: for the application it is the client, and every page came by http',
    wayOut: 'Add the range of the pods of your ingress, such as 10.0.0.0/8.',
  };
}

function* loadBalancer({ spec, object }: Workload): Generator<Finding> {
  const { type, externalTrafficPolicy, annotations = {} } = spec.service;
  const isHidden = type === 'LoadBalancer' && externalTrafficPolicy !== 'Local' && !spec.forwarded.proxyProtocol;
  const namesClient = Object.entries(annotations).some(([key, value]) => NAMES_CLIENT.test(`${key}=${value}`));
  if (!isHidden || namesClient) return;
  yield {
    code: 'C021',
    level: 'warning',
    object,
    path: 'spec.service.type',
    what: 'the load balancer, or the node behind it, may replace the addresses of clients by its own',
    why: 'Then all of them are one client for limits.perClient. They are also believed like a proxy, if forwarded.trust has that address, as the default has',
    wayOut:
      'Set service.externalTrafficPolicy: Local, or forwarded.proxyProtocol: true if the load balancer sends that.',
  };
}

export const clientsRule: Rule = {
  codes: ['C021'],
  find: (workload) => [...trust(workload), ...loadBalancer(workload)],
};
