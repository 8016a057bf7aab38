/** What a pod has counted of its requests, on its page /corelane/metrics, and how much of that is new. */
import { BUCKETS_S } from '../api/objectives.ts';
import { Exposition, type Sample } from './exposition.ts';

export const COUNTS_PAGE = '/corelane/metrics';

export interface RequestCounts {
  /** Requests that were answered, and those of them that were answered 5xx. */
  answered: number;
  failed: number;
  /** Requests whose time was counted, all and by upper bound in seconds. */
  timed: number;
  within: ReadonlyMap<number, number>;
}

const DURATION = 'corelane_request_duration_seconds';

/** Counts of a page; undefined where it has none of them. */
export function readCounts(text: string): RequestCounts | undefined {
  const page = new Exposition(text);
  const requests = page.all('corelane_requests_total');
  const buckets = page.all(`${DURATION}_bucket`);
  if (requests.length === 0 && buckets.length === 0) return undefined;
  return {
    answered: sum(requests),
    failed: sum(requests.filter(({ labels }) => labels.code === '5xx')),
    timed: sum(page.all(`${DURATION}_count`)),
    // Of these only: whoever makes the page could name others without number, other ones each time.
    within: new Map(
      buckets
        .map((sample) => [Number(sample.labels.le), sum([sample])] as const)
        .filter(([bound]) => BUCKETS_S.includes(bound)),
    ),
  };
}

/** No pod answers more in its life. Anybody may have made the page. */
const COUNT_MAX = 1e12;

function sum(samples: Sample[]): number {
  const values = samples.map(({ value }) => (value >= 0 && value <= COUNT_MAX ? Math.floor(value) : 0));
  return Math.min(
    COUNT_MAX,
    values.reduce((total, value) => total + value, 0),
  );
}

/**
 * What has been counted since `before`. An nginx that was started again begins at 0: it may have refused as many by now
 * as it had answered before.
 */
export function countsSince(before: RequestCounts, now: RequestCounts): RequestCounts {
  const isSame =
    now.failed >= before.failed &&
    now.answered - now.failed >= before.answered - before.failed &&
    now.timed >= before.timed &&
    [...before.within].every(([bound, count]) => (now.within.get(bound) ?? 0) >= count);
  if (!isSame) return now;
  return {
    answered: now.answered - before.answered,
    failed: now.failed - before.failed,
    timed: now.timed - before.timed,
    within: new Map([...now.within].map(([bound, count]) => [bound, count - (before.within.get(bound) ?? 0)])),
  };
}

/** Both together. Ten thousand pods may tell the most that there is; status wants a whole number. */
export function addCounts(one: RequestCounts, other: RequestCounts): RequestCounts {
  const add = (count: number, more: number) => Math.min(Number.MAX_SAFE_INTEGER, count + more);
  const within = new Map(one.within);
  for (const [bound, count] of other.within) within.set(bound, add(within.get(bound) ?? 0, count));
  return {
    answered: add(one.answered, other.answered),
    failed: add(one.failed, other.failed),
    timed: add(one.timed, other.timed),
    within,
  };
}
