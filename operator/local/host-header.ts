/**
 * For whom a request is meant. A page that the user visits can let a name of its own lead to 127.0.0.1 (DNS rebinding),
 * and to his browser what is served here is then that page's own: it may read it. The Host tells, and a page cannot
 * change it. Computes only.
 */
import { isIP } from 'node:net';

/** Names that nobody can register (RFC 6761, and .internal of ICANN). */
const RESERVED = /(^|\.)(localhost|test|internal)$/;

/**
 * The value of the first Host in what has come of a request's head.
 * @returns undefined as long as it may still come; '' when there is none
 */
export function hostOf(head: string): string | undefined {
  const [lines = '', ...rest] = head.replace(/^[\r\n]+/, '').split(/\r?\n\r?\n/, 2);
  const isWhole = rest.length > 0;
  const [, value] = /\nhost:([^\n]*)\n/i.exec(isWhole ? `${lines}\n` : lines) ?? [];
  return value?.trim() ?? (isWhole ? '' : undefined);
}

/**
 * Whether a Host is an address, a name that nobody can register, or one of the user's.
 * @param allowed names; one that begins with a dot stands for all names below it
 */
export function isMeantForUs(host: string, allowed: string[] = []): boolean {
  const name = host
    .replace(/:[0-9]*$/, '')
    .replace(/\.$/, '')
    .toLowerCase();
  if (name === '' || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || RESERVED.test(name)) return true;
  return allowed.some((one) => {
    const own = one.toLowerCase();
    return name === own || (own.startsWith('.') && name.endsWith(own));
  });
}
