/** How many requests nginx may have at a time: of all clients, with bodies, and of one client. */
import type { DataPlaneModel } from './model.ts';
import { whole } from './safe.ts';

/** The zones of `limits` and what is counted in each. Goes into `http`. */
export function limitZones({ body }: DataPlaneModel): string {
  return `  # A request is counted in a zone if the zone's key is not empty. The keys are looked at in the order of the limits (see server), each
  # only if all before let the request pass, and those of two zones leave a trace: it tells who has refused a request.
  map "$content_length|$http_transfer_encoding" $corelane_body {
    default 1;
    "~^0*\\|$" "";
  }
  # Beyond what is kept in memory, or of unknown length.
  map "$content_length|$http_transfer_encoding" $corelane_large_body {
    default 1;
    "~^0*(?:${upTo(body.memoryBytes)})?\\|$" "";
  }
  map all $corelane_all {
    "~(?<corelane_past_others>all)" all;
  }
  limit_conn_zone $corelane_large_body zone=large_bodies:64k;
  limit_conn_zone $corelane_body zone=bodies:64k;
  limit_conn_zone $corelane_all zone=requests:64k;
  limit_conn_log_level info;
  limit_conn_status 420;
  map "$corelane_past_others" $corelane_full {
    default requests-full;
    "" bodies-full;
  }
`;
}

/** The limits themselves. Go into `server`. */
export function requestLimits({ limits }: DataPlaneModel): string {
  return `    limit_conn large_bodies ${whole(limits.largeBodies, 'large bodies')};
    limit_conn bodies ${whole(limits.bodies, 'bodies')};
    limit_conn requests ${whole(limits.requests, 'requests')};
    error_page 420 = @corelane_full;
`;
}

/** A regular expression of all decimal numbers up to `max`, without zeros in front. */
export function upTo(max: number): string {
  const digits = whole(max, 'number');
  const shorter = digits.length > 1 ? [`[0-9]{1,${digits.length - 1}}`] : [];
  const smaller = [...digits].flatMap((digit, index) => {
    const rest = digits.length - index - 1;
    const least = index === 0 && digits.length > 1 ? 1 : 0;
    if (Number(digit) <= least) return [];
    return [`${digits.slice(0, index)}[${least}-${Number(digit) - 1}]${rest > 0 ? `[0-9]{${rest}}` : ''}`];
  });
  return [...shorter, ...smaller, digits].join('|');
}
