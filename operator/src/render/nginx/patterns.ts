/** What a user gives, as a part of a regular expression in a map. */
import { headerName, word } from '../safe.ts';

/** Text that stands for itself: of all that may stand in a word, nothing is special but the dot. */
export function literal(text: string, what: string): string {
  return word(text, what).replaceAll('.', '[.]');
}

/** The name of a cookie, which may have any character of a token; each stands for itself. */
export function cookieName(name: string): string {
  return headerName(name, 'cookie')
    .replaceAll(/[$*+.|]/g, '[$&]')
    .replaceAll('^', '\\^');
}

/** A request that has one of these cookies. */
export function cookiePattern(...names: string[]): string {
  return `"~(?:^|; *)(?:${names.map(cookieName).join('|')})="`;
}

/** The elements of a path. */
export function pathPattern(path: string): string {
  return `"~^${path && literal(path, 'path')}(?:/|$)"`;
}

/** The variable that has a header of the request. */
export function headerVariable(name: string): string {
  return `$http_${word(name, 'header').toLowerCase().replaceAll('-', '_')}`;
}

/** The value of a header: its whole, in upper or lower case, or any that is not empty. */
export function headerPattern(value: string | undefined): string {
  return value === undefined ? '"~."' : `"~*^${literal(value, 'header.value')}$"`;
}
