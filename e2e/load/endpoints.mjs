/**
 * Addresses of pods as an ingress controller finds them: the ready endpoints of a Service's EndpointSlices, asked for
 * twice a second. Runs in a pod whose service account may list EndpointSlices.
 */
import { readFileSync } from 'node:fs';

const TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';
const POLL_MS = 500;

/**
 * @param {{ namespace: string, service: string }} of the Service
 * @returns {Promise<{ pick: () => URL, stop: () => void }>} `pick` gives the endpoints in turn; the last list stays in
 * use
 *   when the API server does not answer, as in an ingress
 */
export async function watchEndpoints({ namespace, service }) {
  let targets = await listEndpoints({ namespace, service });
  let next = 0;
  const timer = setInterval(async () => {
    targets = await listEndpoints({ namespace, service }).catch(() => targets);
  }, POLL_MS);
  return {
    pick: () => {
      next += 1;
      return targets[next % targets.length];
    },
    stop: () => clearInterval(timer),
  };
}

async function listEndpoints({ namespace, service }) {
  const selector = encodeURIComponent(`kubernetes.io/service-name=${service}`);
  const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?labelSelector=${selector}`;
  const response = await fetch(`https://kubernetes.default.svc${path}`, {
    headers: { authorization: `Bearer ${readFileSync(TOKEN, 'utf8')}` },
    signal: AbortSignal.timeout(5_000),
  });
  if (!response.ok) throw new Error(`the API server answers ${response.status} to ${path}`);
  const { items } = await response.json();
  return items.flatMap(readyTargets);
}

/** @returns {URL[]} of one EndpointSlice */
export function readyTargets({ endpoints, ports }) {
  const ready = (endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false);
  return ready.flatMap(({ addresses }) => addresses.map((address) => new URL(`http://${address}:${ports[0].port}/`)));
}
