/**
 * Scalars that the schema is built from: durations, byte sizes, int-or-percent values. Each is one definition
 * that yields the zod check, the OpenAPI pattern and the CEL rule with the same message.
 */
import { z } from 'zod';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
const UNIT_BYTES = { Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3 } as const;

export const DURATION_PATTERN = /^[0-9]{1,6}(ms|s|m|h)$/;
const SIZE_PATTERN = /^[1-9][0-9]{0,6}(Ki|Mi|Gi)$/;
/**
 * Number, and a unit or an exponent: the grammar of resource.Quantity in Kubernetes' apimachinery. `1E` is an exa,
 * `1E3` a thousand. Digits have one place each where they can stand: a million of them, and a letter, are read once.
 */
const QUANTITY_PATTERN = /^([+-]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?$/;
/** Kubernetes takes larger ones for this. */
const QUANTITY_MAX = 2 ** 63 - 1;
const INT_OR_PERCENT_PATTERN = /^(100|[0-9]{1,2})%$/;

/**
 * Milliseconds of a duration such as `250ms`, `10s`, `5m` or `1h`.
 * @throws RangeError when the text is no such duration.
 */
export function durationMs(text: string): number {
  if (!DURATION_PATTERN.test(text)) throw new RangeError(`"${text}" is no duration such as 250ms, 10s or 5m`);
  const unit = text.replace(/^[0-9]+/, '') as keyof typeof UNIT_MS;
  return Number.parseInt(text, 10) * UNIT_MS[unit];
}

/**
 * Bytes of a size such as `64Ki`, `8Mi` or `1Gi`.
 * @throws RangeError when the text is no such size.
 */
export function sizeBytes(text: string): number {
  if (!SIZE_PATTERN.test(text)) throw new RangeError(`"${text}" is no size such as 64Ki, 8Mi or 1Gi`);
  return Number.parseInt(text, 10) * UNIT_BYTES[text.slice(-2) as keyof typeof UNIT_BYTES];
}

const QUANTITY_UNITS: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/**
 * Value of a quantity as Kubernetes writes them, such as `100m`, `1`, `.5Gi` or `129e6`; undefined for anything else.
 */
export function parseQuantity(text: string | number): number | undefined {
  const [, number, unit, exponent] = QUANTITY_PATTERN.exec(String(text)) ?? [];
  if (number === undefined) return undefined;
  const value =
    exponent === undefined ? Number(number) * (QUANTITY_UNITS[unit ?? ''] ?? 1) : Number(`${number}e${exponent}`);
  return Math.min(QUANTITY_MAX, Math.max(-QUANTITY_MAX, value));
}

/**
 * Value of a quantity such as `100m`, `1` or `64Mi`.
 * @throws RangeError when the text is no such quantity.
 */
export function quantityOf(text: string | number): number {
  const value = parseQuantity(text);
  if (value === undefined) throw new RangeError(`"${text}" is no quantity such as 100m, 1, 64Mi`);
  return value;
}

/** Bounds of a scalar, both ends allowed, written as the user would write them. */
export interface Bounds {
  min: string;
  max: string;
}

/**
 * The generator drops an OpenAPI `pattern` that stands beside such a rule: the API server would report the
 * bare expression instead of the sentence that says how to mend the value.
 */
function celRule(rule: string, message: string) {
  return { 'x-kubernetes-validations': [{ rule, message }] };
}

/** A duration field with bounds. */
export function duration({ min, max }: Bounds) {
  const message = `must be a duration from ${min} to ${max}, such as 500ms, 10s or 5m`;
  return z
    .string()
    .max(10)
    .regex(DURATION_PATTERN, message)
    .refine((text) => inBounds(text, durationMs, { min, max }), message)
    .meta(
      celRule(
        `self.matches('${DURATION_PATTERN.source}') && duration(self) >= duration('${min}') && duration(self) <= duration('${max}')`,
        message,
      ),
    );
}

/** A byte-size field with bounds. */
export function size({ min, max }: Bounds) {
  const message = `must be a size from ${min} to ${max}, such as 64Ki, 8Mi or 1Gi`;
  const cel = `self.matches('${SIZE_PATTERN.source}') && quantity(self).compareTo(quantity('${min}')) >= 0 && quantity(self).compareTo(quantity('${max}')) <= 0`;
  return z
    .string()
    .max(10)
    .regex(SIZE_PATTERN, message)
    .refine((text) => inBounds(text, sizeBytes, { min, max }), message)
    .meta(celRule(cel, message));
}

function inBounds(text: string, parse: (text: string) => number, { min, max }: Bounds): boolean {
  try {
    return parse(text) >= parse(min) && parse(text) <= parse(max);
  } catch {
    return false; // the pattern has already said what is wrong
  }
}

/** CPU, memory or disk of a container; `min` as the user would write it. */
export function quantity(min = '0') {
  const message = min === '0' ? 'must be a quantity such as 100m, 1, 64Mi' : `must be a quantity of at least ${min}`;
  return z
    .string()
    .max(20)
    .refine((text) => (parseQuantity(text) ?? -1) >= quantityOf(min), message)
    .meta(celRule(`isQuantity(self) && quantity(self).compareTo(quantity("${min}")) >= 0`, message));
}

/** A count or a percentage of pods, as in a Deployment's rolling update. */
export function intOrPercent() {
  const message = 'must be a number from 0 to 1000, or a percentage from "0%" to "100%"';
  return z.union([z.int().min(0).max(1000), z.string().max(4).regex(INT_OR_PERCENT_PATTERN, message)]).meta({
    'x-kubernetes-int-or-string': true,
    ...celRule("type(self) == int ? self >= 0 && self <= 1000 : self.matches('^(100|[0-9]{1,2})%$')", message),
  });
}

/** A percentage with two decimals, as nginx' split_clients has it. */
export function percentage() {
  const message = 'must be a percentage with at most 2 decimals, such as 12.5';
  return (
    z
      .number()
      .min(0)
      .max(100)
      .refine((percent) => Math.round(percent * 100) / 100 === percent, message)
      // Not by its text: to the API server that of a number may be without an end.
      .meta(celRule('double(int(self * 100.0 + 0.5)) / 100.0 == self', message))
  );
}

/** A range of addresses in CIDR notation. */
export function cidr() {
  const message = 'must be a range of addresses such as 10.0.0.0/8 or 2001:db8::/32';
  return z
    .string()
    .max(43)
    .refine((text) => z.cidrv4().safeParse(text).success || z.cidrv6().safeParse(text).success, message)
    .meta(celRule('isCIDR(self)', message));
}

/** Text of at most `lengthMax` characters, all of which `pattern` (RE2 and JavaScript) describes. */
export function matching(pattern: string, lengthMax: number, message: string) {
  return z
    .string()
    .min(1)
    .max(lengthMax)
    .regex(new RegExp(pattern), message)
    .meta(celRule(`self.matches(r'${pattern}')`, message));
}

/** Characters that are harmless in any configuration (`word` of render/safe.ts has them). */
export function word(lengthMax: number, what: string, example: string) {
  const message = `must be ${what} such as ${example}: letters, digits and . _ ~ / @ : - only`;
  return matching('^[A-Za-z0-9._~/@:-]+$', lengthMax, message);
}

export function headerName(lengthMax: number, example: string) {
  return matching('^[A-Za-z][A-Za-z0-9-]*$', lengthMax, `must be the name of a header, such as ${example}`);
}

/**
 * A token (RFC 6265), so `connect.sid` and `__Secure-next-auth.session-token` are names; without ' and #, which begin a
 * string and a comment in the configuration of the proxies.
 */
export function cookieName(lengthMax: number, example: string) {
  const pattern = '^[A-Za-z0-9!$%&*+.^_`|~-]+$';
  return matching(pattern, lengthMax, `must be the name of a cookie, such as ${example}`);
}

/**
 * A path of the URL: plain characters only, so that it can stand in nginx.conf without any escaping (I7), and as nginx
 * compares it, which takes out empty, "." and ".." parts of what a client asks for.
 */
export function urlPath() {
  const pattern = '^(/[.]*[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+/?$';
  const message =
    'must be a path such as /ping: it begins with "/", has letters, digits and . _ ~ - / only, and no part that is empty or consists of dots';
  return z
    .string()
    .min(2, message)
    .max(128)
    .regex(new RegExp(pattern), message)
    .meta(celRule(`self.matches('${pattern}')`, message));
}

/**
 * Path elements from the root, as in an Ingress with pathType Prefix: plain characters only, so that it can stand in
 * nginx.conf (I7), and as nginx compares it.
 */
export function pathPrefix() {
  const pattern = '^(/|(/[.]*[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+/?)$';
  const message =
    'must be a path such as /shop: it begins with "/", has letters, digits and . _ ~ - / only, and no part that is empty or consists of dots';
  return matching(pattern, 128, message);
}

/**
 * A path with a query, as it stands in a request: no blank, quote or control character. It goes to no configuration
 * file.
 */
export function requestTarget() {
  const message =
    'must be a path such as /page?id=1: it begins with "/" and has letters, digits and . _ ~ - / ? & = % , : @ + only';
  const pattern = '^/[A-Za-z0-9._~/?&=%,:@+-]*$';
  return z
    .string()
    .max(1024)
    .regex(new RegExp(pattern), message)
    .meta(celRule(`self.matches('${pattern}')`, message));
}

/** A time as Kubernetes writes it: RFC 3339, in whole seconds. */
export function rfc3339(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z');
}
