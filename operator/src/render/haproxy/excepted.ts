/** Requests that must not run twice, by their path (`replayExcept`). Those of classes: served-as.ts. */
import type { Lines } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { word } from '../safe.ts';

/**
 * Acl `excepted`, in a frontend. Applications differ in what they take for the same path, and an exception too many
 * costs little, so spellings that links and gateways have make no difference. Dot segments, backslashes and what is
 * encoded twice do: no browser sends them, and a client that wants a second run can send a second request. nginx has
 * refused what url_dec cannot decode.
 */
export function isExcepted({ replay: { except } }: DataPlaneModel): Lines {
  const parts = except.parts.map((part) => word(part, 'part of a path'));
  const prefixes = except.prefixes.map((prefix) => word(prefix, 'replayExcept'));
  return [
    '# Whether a GET must not run twice, by its path: decoded, without repeated slashes, and with one at its end.',
    'http-request set-var(txn.path) path,url_dec,regsub(//+,/,g),concat(/)',
    `acl excepted var(txn.path) -m sub -i ${parts.join(' ')}`,
    `acl excepted var(txn.path) -m beg -i ${prefixes.join(' ')}`,
  ];
}
