/** Which class a request is in. What HAProxy does with it: haproxy/priority.ts. */
import { block, type Lines } from '../directives.ts';
import type { PriorityClass } from '../model/priority.ts';
import { word } from '../safe.ts';
import { allOf, type Field } from './matches.ts';
import { cookiePattern, headerPattern, headerVariable, literal, pathPattern } from './patterns.ts';

type Match = PriorityClass['matches'][number];

/** For HAProxy, which takes it away. */
export const TELLS_CLASS = 'proxy_set_header X-Corelane-Class $corelane_class;';

/** For the access log. */
export const LOGS_CLASS = `'"class":"$corelane_class",'`;

/** Maps: of each field of a match, of each match with several, of each class, and of all. */
export function classes(classes: PriorityClass[]): Lines {
  return [
    '# $corelane_class: of several that a request is in the first here, which waits the longest. Empty: nobody goes before it.',
    classes.map(({ matches }, index) => inClass(matches, index)),
    block(
      `map "${classes.map((_class, index) => `$corelane_in_${index}`).join('')}" $corelane_class`,
      classes.map(({ name }, index) => `~^${index} ${word(name, 'priority.classes.name')};`),
    ),
  ];
}

/** $corelane_in_N is N, or empty. */
function inClass(matches: Match[], index: number): Lines {
  const all = matches.map((match, number) => allOf(fieldsOf(match), `$corelane_match_${index}_${number}`));
  return [
    all.map(({ maps }) => maps),
    block(`map "${all.map(({ variable }) => variable).join('')}" $corelane_in_${index}`, `default ${index};`, '"" "";'),
  ];
}

function fieldsOf({ visitor, pathPrefix, header, cookie, userAgent }: Match): Field[] {
  const fields: Field[] = [];
  if (visitor) fields.push(['visitor', `$corelane_${word(visitor, 'visitor').toLowerCase()}`, '1']);
  if (pathPrefix) fields.push(['path', '$uri', pathPattern(pathPrefix.replace(/\/$/, ''))]);
  if (header) {
    fields.push(['header', headerVariable(header.name), headerPattern(header.value)]);
  }
  if (cookie) fields.push(['cookie', '$http_cookie', cookiePattern(cookie)]);
  if (userAgent) fields.push(['agent', '$http_user_agent', `"~*${literal(userAgent, 'userAgent')}"`]);
  return fields;
}
