/** C011: what Services and Ingresses in front say of sessions, WebSockets, streams and uploads. */
import { durationMs, parseQuantity, sizeBytes } from '../src/api/scalars.ts';
import type { Finding } from './finding.ts';
import type { Rule, Workload } from './workload.ts';

const STICKY = [
  /^nginx\.ingress\.kubernetes\.io\/affinity=cookie/,
  /^nginx\.org\/sticky-cookie-services=/,
  /^traefik\.(ingress\.kubernetes\.io|io)\/(service\.)?(sticky\.cookie|affinity)=true/,
  /^alb\.ingress\.kubernetes\.io\/target-group-attributes=.*stickiness\.enabled=true/,
  /^haproxy\.org\/cookie-persistence=/,
  /^haproxy-ingress\.github\.io\/affinity=cookie/,
  /^projectcontour\.io\/.*cookie/i,
];
const WEB_SOCKETS = [/^nginx\.org\/websocket-services=/, /websocket/i];
const STREAMS = [
  /^nginx\.ingress\.kubernetes\.io\/proxy-(request-)?buffering=off/,
  /^nginx\.org\/proxy-buffering=false/,
];
const READ_TIMEOUT = /^(nginx\.ingress\.kubernetes\.io|nginx\.org)\/proxy-read-timeout$/;
const BODY_SIZE = /^(nginx\.ingress\.kubernetes\.io\/proxy-body-size|nginx\.org\/client-max-body-size)$/;

interface Said {
  level: 'decide';
  what: string;
  why: string;
  wayOut: string;
}

const sticky = (what: string): Said => ({
  level: 'decide',
  what,
  why: 'Any free worker of any pod renders a request, so what one process remembers of a visitor another one does not know',
  wayOut: 'Keep sessions outside of the process (a cookie, Redis). Without such it can be dropped.',
});

/** Bytes of nginx' sizes: `8m`, `1g`, `512k`. */
function nginxBytes(text: string): number | undefined {
  const [, number, unit = ''] = /^([0-9]{1,9})([kKmMgG]?)$/.exec(text.trim()) ?? [];
  return number === undefined
    ? undefined
    : parseQuantity(unit === '' ? number : `${number}${unit.toUpperCase()}i`.replace('Ki', 'Ki'));
}

/** What one annotation of an Ingress means for a RenderService. */
function said({ spec }: Workload, key: string, value: string): Said | undefined {
  const line = `${key}=${value}`;
  if (STICKY.some((pattern) => pattern.test(line))) return sticky(`sticky sessions (${key})`);
  if (WEB_SOCKETS.some((pattern) => pattern.test(line)) && !spec.webSockets.enabled) {
    return {
      level: 'decide',
      what: `WebSockets (${key})`,
      why: 'They need a switch, and each takes a place of its worker for as long as it lasts',
      wayOut: 'Leave them in a Deployment of their own, or set webSockets.enabled: true and concurrency above 1.',
    };
  }
  if (STREAMS.some((pattern) => pattern.test(line))) {
    return {
      level: 'decide',
      what: `buffering is switched off (${key})`,
      why: 'Corelane buffers bodies and responses, so that a slow client holds no worker; streams arrive as they are written, and 32 of them in a worker take no render slot',
      wayOut:
        'Pages and a few streams need nothing. Give more open streams (Server-Sent Events) a class (docs/classes.md).',
    };
  }
  if (READ_TIMEOUT.test(key)) return longRender(spec.timeouts, key, value);
  const bytes = BODY_SIZE.test(key) ? nginxBytes(value) : undefined;
  const isUnlimited = bytes === 0;
  if (bytes === undefined || (!isUnlimited && bytes <= sizeBytes(spec.buffering.request.maxSize))) return undefined;
  return {
    level: 'decide',
    what: `bodies up to ${isUnlimited ? 'any size' : value} (${key})`,
    why: `Corelane answers 413 above ${spec.buffering.request.maxSize}`,
    wayOut: `Set buffering.request.maxSize${isUnlimited ? '' : `: ${Math.ceil(bytes / 2 ** 20)}Mi`}, and look at sidecar.nginx.ephemeralStorageLimit (docs/edge.md).`,
  };
}

function longRender({ render, handler }: Workload['spec']['timeouts'], key: string, value: string): Said | undefined {
  const seconds = Number.parseInt(value, 10);
  if (!(1000 * seconds > durationMs(render))) return undefined;
  return {
    level: 'decide',
    what: `responses may take ${seconds} s (${key})`,
    why: `Corelane gives up a GET after ${render} and starts its worker again; other methods have ${handler}`,
    wayOut:
      'Set timeouts.render to what your longest page takes, and timeouts.handler for other methods; give exports, long polls and streams a class (docs/classes.md).',
  };
}

export const trafficRule: Rule = {
  codes: ['C011'],
  find(workload) {
    const { services, ingresses } = workload.surroundings;
    const findings: Finding[] = services
      .filter(({ spec }) => spec?.sessionAffinity === 'ClientIP')
      .map(({ metadata }) => ({
        ...sticky('sessionAffinity: ClientIP'),
        code: 'C011',
        object: `Service/${metadata?.name}`,
        path: 'spec.sessionAffinity',
      }));
    for (const { metadata } of ingresses) {
      for (const [key, value] of Object.entries(metadata?.annotations ?? {})) {
        const found = said(workload, key, String(value));
        const path = `metadata.annotations[${key}]`;
        if (found) findings.push({ ...found, code: 'C011', object: `Ingress/${metadata?.name}`, path });
      }
    }
    return findings;
  },
};
