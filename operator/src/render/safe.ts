/** Last line of defence of I7 (config is data): what reaches a configuration file is a number or a harmless word. */

/** A word that may stand unquoted in nginx.conf and haproxy.cfg. */
const WORD = /^[A-Za-z0-9._~/@:-]+$/;

/**
 * The text itself, if it cannot end a directive or begin another one.
 * @throws RangeError when it is empty or has a blank, a newline, NUL, a quote, or one of `; { } # $ \ %`.
 */
export function word(text: string, what: string): string {
  if (!WORD.test(text))
    throw new RangeError(`${what} must not appear in a configuration file: ${JSON.stringify(text)}`);
  return text;
}

/** What may stand in a quoted word of nginx.conf: nothing that ends it, begins a variable, or is an escape. */
const QUOTED = /^[A-Za-z0-9 .,:=*/_+()<>?&@!~-]+$/;

/**
 * The text in quotes, if it is one word of nginx.conf in them.
 * @throws RangeError when it is empty or has a newline, NUL, a quote, or one of `; { } # $ \ %`.
 */
export function quoted(text: string, what: string): string {
  if (!QUOTED.test(text))
    throw new RangeError(`${what} must not appear in a configuration file: ${JSON.stringify(text)}`);
  return `"${text}"`;
}

/** A token of RFC 9110, which names of headers, cookies and parameters are. */
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;

/**
 * The name itself, if it can stand alone in a line of a file that is no configuration.
 * @throws RangeError when it is none.
 */
export function headerName(text: string, what: string): string {
  if (!TOKEN.test(text)) throw new RangeError(`${what} must be a name of a header: ${JSON.stringify(text)}`);
  return text;
}

/**
 * The text itself, if it can end a line of such a file.
 * @throws RangeError when it is empty, longer than 256 characters, or has others than printable ones of ASCII.
 */
export function printable(text: string, what: string): string {
  if (!/^[ -~]{1,256}$/.test(text))
    throw new RangeError(`${what} must be printable characters: ${JSON.stringify(text)}`);
  return text;
}

/**
 * The digits of a whole number from 0 up.
 * @throws RangeError when it is anything else (NaN, a fraction, a string that slipped through).
 */
export function whole(value: number, what: string): string {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new RangeError(`${what} must be a whole number from 0: ${value}`);
  return String(value);
}

/**
 * A whole number of milliseconds, as both proxies read it.
 * @throws RangeError as `whole` does.
 */
export function ms(value: number, what: string): string {
  return `${whole(value, what)}ms`;
}

/**
 * A percentage with two decimals, as nginx' split_clients reads it.
 * @throws RangeError when it is not above 0 and below 100, or has more decimals.
 */
export function percent(value: number, what: string): string {
  if (!(value > 0 && value < 100) || Math.round(value * 100) / 100 !== value)
    throw new RangeError(`${what} must be a percentage with at most 2 decimals: ${value}`);
  return `${value.toFixed(2)}%`;
}
