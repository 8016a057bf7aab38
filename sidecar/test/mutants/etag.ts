/** Breakages of ETags and 304. */
import { type Mutant, REMOVED } from './mutant.ts';

export const etag: Mutant[] = [
  {
    name: 'all pages have one tag',
    breaks: 'etag',
    file: 'etag.cjs',
    edits: [[/\.update\(bytes\)/g, REMOVED]],
    caughtBy: 'etag: another page is sent',
  },
  {
    name: 'who has some other page gets 304',
    breaks: 'etag',
    file: 'etag.cjs',
    edits: [[/condition\.trim\(\) === '\*' \|\| .*;/g, "condition !== '';"]],
    caughtBy: 'etag: another page is sent',
  },
  {
    name: 'a 304 says that chunks follow',
    breaks: 'I5',
    file: 'etag.cjs',
    edits: [
      [/const kept = .*;/g, 'const kept = lines;'],
      [/response\.(_hasBody|chunkedEncoding) = false;/g, REMOVED],
    ],
    caughtBy: 'etag: 304 and pages take turns',
  },
  {
    name: 'a 304 loses what caches need',
    breaks: 'etag',
    file: 'etag.cjs',
    edits: [[/const DROPPED = .*;/g, 'const DROPPED = /^(?!date)/i;']],
    caughtBy: 'etag: who has a page gets 304',
  },
  {
    name: 'what nobody may keep has a tag',
    breaks: 'etag',
    file: 'etag.cjs',
    edits: [[/if \(valuesOf\(lines, 'cache-control'\).*/g, REMOVED]],
    caughtBy: 'etag: not for no-store',
  },
  {
    name: 'an error has a tag',
    breaks: 'etag',
    file: 'etag.cjs',
    edits: [[/response\.statusCode !== 200/g, 'false']],
    caughtBy: 'etag: not for another status',
  },
  {
    name: 'a picture has a tag',
    breaks: 'etag',
    file: 'etag.cjs',
    edits: [[/TYPE\.test\(types\[0\]\)/g, 'true']],
    caughtBy: 'etag: not for a picture',
  },
  {
    name: 'the tag of a program gets a second one',
    breaks: 'etag',
    file: 'etag.cjs',
    edits: [[/'etag', /g, REMOVED]],
    caughtBy: 'etag: not for a tag of the program',
  },
  {
    name: 'a POST is answered 304',
    breaks: 'etag',
    file: 'etag.cjs',
    edits: [[/if \(!METHODS\.includes\(request\.method\)\) return;/g, REMOVED]],
    caughtBy: 'etag: not for a POST',
  },
  {
    name: 'tags are made whatever the resource says',
    breaks: 'etag',
    file: 'worker.cjs',
    edits: [[/process\.env\.CORELANE_ETAG === 'Auto'/g, 'true']],
    caughtBy: 'etag: none where they are not wanted',
  },
];
