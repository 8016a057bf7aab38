/**
 * Facts about a canary, as annotations of the RenderService tell them by the name of its revision. What names another
 * revision says nothing about this one, so it does not matter how long it stays there, nor how often it is read.
 */

/** A value that names a revision: `7f3a9c21d0`, `7f3a9c21d0#2` of its second try, `7f3a9c21d0#2:3` up to its step 3. */
const FACT = /^([0-9a-f]{10})(?:#([1-9][0-9]{0,5}|1000000))?(?::([1-9][0-9]?))?$/;

export interface Fact {
  revision: string;
  /** Which try it is about. */
  attempt: number;
  /** Up to which step; undefined: all. */
  step?: number;
}

/** What is said of revisions. */
export interface Facts {
  promote?: Fact | undefined;
  /** Of whatever try: who stops something must not have to know which it is. */
  abort?: string | undefined;
  retry?: Fact | undefined;
}

/** A value that is none of these says nothing. */
export function readFacts(texts: {
  promote?: string | undefined;
  abort?: string | undefined;
  retry?: string | undefined;
}): Facts {
  return {
    promote: readFact(texts.promote),
    abort: readFact(texts.abort)?.revision,
    retry: readFact(texts.retry),
  };
}

function readFact(text = ''): Fact | undefined {
  const [, revision, attempt = '1', step] = FACT.exec(text.trim()) ?? [];
  if (revision === undefined) return undefined;
  return { revision, attempt: Number(attempt), ...(step !== undefined && { step: Number(step) }) };
}

/** The value of a fact. */
export function factText({ revision, attempt, step }: Fact): string {
  return `${revision}${attempt > 1 ? `#${attempt}` : ''}${step === undefined ? '' : `:${step}`}`;
}
