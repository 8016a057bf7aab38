/**
 * Evidence against a canary, from what became of its requests and of those of the stable revision in the same time.
 * Who is on which side is chance, so of k errors x are the canary's as chance has it, if it is no worse: x is binomial,
 * with its share of the requests. How often errors happen at all drops out of it, and the share may change.
 *
 * It is a mixture likelihood ratio: "some times as many as the tolerated ones" against "as many as are tolerated". It
 * comes to 100 with a probability of 1 % at most, however often one looks (Ville's inequality).
 */
import { z } from 'zod';

// Looked up once: in the sandbox of a test runner every look at a global costs a microsecond.
const { exp, log, max, min, round } = Math;

/** What became of requests. */
export interface SideFigures {
  /** Answered, or lost. */
  requests: number;
  /** Of these, answered 5xx or lost. */
  errors: number;
  /** Renders whose time was judged, and of these those that were slow. */
  renders: number;
  slow: number;
}

/** Of clients whose side follows from what they send: answers, and how many clients have had their first error. */
export interface ClientFigures {
  seen: number;
  failed: number;
}
export const NO_CLIENTS: ClientFigures = { seen: 0, failed: 0 };

/** Of both sides in the same time: of requests whose side is chance, and of clients, of whom either has as many. */
export interface Look {
  canary: SideFigures;
  stable: SideFigures;
  clients?: { canary: ClientFigures; stable: ClientFigures } | undefined;
}

/** How many times as many the canary might have. */
const ALTERNATIVES = [3, 10, 30] as const;
/** How many times as many slow renders as the stable side has are tolerated, and errors unless asked otherwise. */
const TOLERATED = 1.5;
/**
 * A long time without anything against it must not hide what comes then. Each time that the lower bound is touched adds
 * this little to what may be a false alarm: e^-10.
 */
const LOG_MIN = -10;
const LOG_MAX = 60;
/** So much of it may be left at another share: a twentieth (e^-3) of a false alarm for each step. */
const PAST_LOG_MIN = -3;
const COUNT_MAX = Number.MAX_SAFE_INTEGER;

const count = z.int().min(0).max(COUNT_MAX);
const figures = z.object({ requests: count, errors: count, renders: count, slow: count });
const logs = z.array(z.number().min(LOG_MIN).max(LOG_MAX)).length(ALTERNATIVES.length);

/** What is remembered; some 400 bytes, and some 100 more while something waits. */
export const evidenceSchema = z.object({
  /** The share that the canary has. */
  share: count,
  canary: figures,
  stable: figures,
  /** What of the canary's there was when it got that share. */
  before: figures,
  /** Logarithms of the likelihood ratios, by alternative. */
  logs: z.object({ errors: logs, slow: logs }),
  /** What was seen of one side alone with this share, until there is something of the other. */
  waiting: z.object({ canary: figures, stable: figures }).optional(),
  /** What is slow, in milliseconds; missing where that is not known. */
  slowMs: z.number().min(0).max(1e9).optional(),
});
export type Evidence = z.output<typeof evidenceSchema>;

const NO_FIGURES: SideFigures = { requests: 0, errors: 0, renders: 0, slow: 0 };
const NOTHING = { canary: NO_FIGURES, stable: NO_FIGURES };
const EVEN = ALTERNATIVES.map(() => 0);

/** Before anything was seen. */
export function noEvidence(share: number): Evidence {
  return { share, canary: NO_FIGURES, stable: NO_FIGURES, before: NO_FIGURES, logs: { errors: EVEN, slow: EVEN } };
}

/**
 * As it is with another share. What speaks against the canary stays; of what has spoken for it little does: it is no
 * excuse for what happens at this one.
 */
export function atShare(evidence: Evidence, share: number): Evidence {
  if (evidence.share === share) return evidence;
  const kept = (values: number[]) => values.map((value) => max(PAST_LOG_MIN, value));
  const { waiting: _ofBefore, ...rest } = evidence;
  const { errors, slow } = evidence.logs;
  return { ...rest, share, before: evidence.canary, logs: { errors: kept(errors), slow: kept(slow) } };
}

/** What the canary has had with this share. */
export function inStep({ canary, before }: Evidence): SideFigures {
  return {
    requests: canary.requests - before.requests,
    errors: canary.errors - before.errors,
    renders: canary.renders - before.renders,
    slow: canary.slow - before.slow,
  };
}

/**
 * With one look more. Where requests are few, a look may have seen one side alone: it counts together with the next
 * ones.
 * @param ratio how many times as many errors as the stable side has are tolerated
 */
export function looked(evidence: Evidence, { canary, stable, clients }: Look, ratio: number): Evidence {
  const { waiting = NOTHING, ...rest } = evidence;
  const { errors, slow } = evidence.logs;
  const all = { canary: sum(waiting.canary, canary), stable: sum(waiting.stable, stable) };
  const left = unpaired(all);
  // Of two such clients that have failed either is the canary's, if it is no worse: so many of so many.
  const ofClients = likelier(errors, [clients?.canary.failed ?? 0, 1], [clients?.stable.failed ?? 0, 1], ratio);
  return {
    ...rest,
    canary: withClients(sum(evidence.canary, canary), clients?.canary),
    stable: withClients(sum(evidence.stable, stable), clients?.stable),
    logs: {
      errors: likelier(
        ofClients,
        [all.canary.errors, all.canary.requests],
        [all.stable.errors, all.stable.requests],
        ratio,
      ),
      slow: likelier(slow, [all.canary.slow, all.canary.renders], [all.stable.slow, all.stable.renders], TOLERATED),
    },
    ...(left && { waiting: left }),
  };
}

function withClients(figures: SideFigures, { seen, failed }: ClientFigures = NO_CLIENTS): SideFigures {
  const more = { ...NO_FIGURES, requests: max(seen, failed), errors: failed };
  return sum(figures, more);
}

/** What has nothing on the other side to be compared with. */
function unpaired({ canary, stable }: Look): Evidence['waiting'] {
  const isAlone = (of: 'requests' | 'renders') => (canary[of] === 0) !== (stable[of] === 0);
  const [ofRequests, ofRenders] = [isAlone('requests'), isAlone('renders')];
  if (!ofRequests && !ofRenders) return undefined;
  const left = ({ requests, errors, renders, slow }: SideFigures) => ({
    ...(ofRequests ? { requests, errors } : { requests: 0, errors: 0 }),
    ...(ofRenders ? { renders, slow } : { renders: 0, slow: 0 }),
  });
  return { canary: left(canary), stable: left(stable) };
}

function sum(one: SideFigures, other: SideFigures): SideFigures {
  const add = (name: keyof SideFigures) => min(COUNT_MAX, one[name] + other[name]);
  return { requests: add('requests'), errors: add('errors'), renders: add('renders'), slow: add('slow') };
}

type Happened = [times: number, of: number];

function likelier(
  before: number[],
  [canary, ofCanary]: Happened,
  [stable, ofStable]: Happened,
  ratio: number,
): number[] {
  if (canary + stable === 0 || ofCanary === 0 || ofStable === 0) return before;
  const shareAt = (times: number) => (times * ofCanary) / (times * ofCanary + ofStable);
  const tolerated = shareAt(ratio);
  return before.map((value, index) => {
    const supposed = shareAt(ratioOf(index, ratio));
    const more = canary * log(supposed / tolerated) + stable * log((1 - supposed) / (1 - tolerated));
    // Four digits: it is written down.
    return round(1e4 * min(LOG_MAX, max(LOG_MIN, value + more))) / 1e4;
  });
}

/** As far from what is tolerated as ever. */
function ratioOf(index: number, ratio: number): number {
  return ((ALTERNATIVES[index] as number) * ratio) / TOLERATED;
}

/** How much likelier it is that the canary is worse than is tolerated: 1 is even, 100 is enough. */
export function weight(values: number[]): number {
  return values.reduce((total, value) => total + exp(value), 0) / values.length;
}
