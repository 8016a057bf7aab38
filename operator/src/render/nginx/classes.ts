/** Which requests are no renders. What HAProxy does with them: haproxy/classes.ts. */
import { block, type Lines } from '../directives.ts';
import type { RequestClass } from '../model/classes.ts';
import { word } from '../safe.ts';
import { allOf, type Field } from './matches.ts';
import { headerPattern, headerVariable, literal } from './patterns.ts';

type Match = RequestClass['matches'][number];

/** For HAProxy, which takes it away. Empty: a render. */
export const TELLS_SERVED_AS = 'proxy_set_header X-Corelane-Served-As $corelane_served_as;';

/** For the access log. */
export const LOGS_SERVED_AS = `'"servedAs":"$corelane_served_as",'`;

/**
 * What somebody may read as another path than nginx does: empty parts, dot segments, backslashes, fragments, what is
 * encoded twice, and an encoded "/", "\\" or ".".
 */
export const ODD_PATH = '(?![^?]*(?://|/[.]{1,2}(?:[/;?]|$)|[\\\\\\\\#]|%(?:25|2[eE]|2[fF]|5[cC])))';

/** Maps: of each field of a match, of each match with several, of each class, and of all. */
export function servedAs(classes: RequestClass[]): Lines {
  return [
    '# $corelane_served_as: of several classes that a request is in the first. Empty: it is a render. Looked at is the path as the worker',
    "# gets it, and one that is spelled oddly is a render's: it must not lead to a page past the render slots.",
    classes.map(({ matches }, index) => inClass(matches, index)),
    block(
      `map "${classes.map((_class, index) => `$corelane_place_${index}`).join('')}" $corelane_served_as`,
      classes.map(({ name }, index) => `~^${index} ${word(name, 'classes.name')};`),
    ),
  ];
}

/** $corelane_place_N is N, or empty. */
function inClass(matches: Match[], index: number): Lines {
  const all = matches.map((match, number) => allOf(fieldsOf(match), `$corelane_place_${index}_${number}`));
  return [
    all.map(({ maps }) => maps),
    block(
      `map "${all.map(({ variable }) => variable).join('')}" $corelane_place_${index}`,
      `default ${index};`,
      '"" "";',
    ),
  ];
}

function fieldsOf({ pathPrefix, path, pathSuffix, method, header }: Match): Field[] {
  const fields: Field[] = [];
  if (pathPrefix) fields.push(['path', '$request_uri', plainPath(pathPrefix.replace(/\/$/, ''), '(?:[/?]|$)')]);
  if (path) fields.push(['path', '$request_uri', plainPath(path, '(?:[?]|$)')]);
  if (pathSuffix) fields.push(['path', '$request_uri', plainPath(pathSuffix, '(?:[?]|$)', '[^?]*')]);
  if (method) fields.push(['method', '$request_method', word(method, 'method')]);
  if (header) fields.push(['header', headerVariable(header.name), headerPattern(header.value)]);
  return fields;
}

function plainPath(path: string, end: string, begin = ''): string {
  return `"~^${ODD_PATH}${begin}${literal(path, 'path')}${end}"`;
}
