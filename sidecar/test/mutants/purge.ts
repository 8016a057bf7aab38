/** Breakages of purges: of what is purged, in which pods, and who may have that done. */
import { exactly, type Mutant, REMOVED } from './mutant.ts';

const all: [Mutant['file'], Omit<Mutant, 'file' | 'breaks'>[]][] = [
  [
    'haproxy.cfg',
    [
      {
        name: 'nobody looks at what a response says was changed',
        edits: [[/ +http-response lua\.note_change if .*\n/g, REMOVED]],
        caughtBy: 'cache-purge: a successful change',
      },
      {
        name: 'a change in a lent worker is not one for the pod that lends',
        edits: [[/ +http-response lua\.note_change_elsewhere .*\n/g, REMOVED]],
        caughtBy: 'cache-purge: a change in a worker of another pod',
      },
    ],
  ],
  [
    'nginx.conf',
    [
      {
        name: 'anybody purges by a URL',
        edits: [[exactly('if ($http_x_corelane_purge = "")'), 'if ($http_x_corelane_purge = "x")']],
        caughtBy: 'cache: nobody purges',
      },
    ],
  ],
  [
    'purge.lua',
    [
      {
        name: 'every redirect of a POST has changed something',
        edits: [[exactly('or status == 303'), 'or status < 400']],
        caughtBy: 'cache: a stranger takes no page away with a POST that leads this method elsewhere',
      },
    ],
  ],
  [
    'cache/purge-list.lua',
    [
      {
        name: 'a stranger takes away the page of any path',
        edits: [[exactly('and named:sub(1, #start) == start then'), 'then']],
        caughtBy: 'cache: a stranger takes no page away',
      },
      {
        name: 'a URL within a URL is where it leads',
        edits: [[exactly("url:match('^%a[%w+.-]*:(//.*)$')"), "url:match('[%w+.-]*:(//.*)$')"]],
        caughtBy: 'cache: what Location names',
      },
    ],
  ],
  [
    'cache/purging.lua',
    [
      {
        name: 'other pods do not hear of a change',
        edits: [[exactly('pcall(peers.tell_change, peer, text)\n    if not ok'), 'true, true\n    if not ok']],
        caughtBy: 'cache-purge: a successful change',
      },
      {
        name: 'a pod that did not answer is not told again',
        edits: [[exactly('if not ok or not has_heard then break end'), 'if not ok and has_heard then break end']],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'a pod that was away has heard of nothing',
        edits: [[exactly('positions:get(peer.address, now) or '), REMOVED]],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'what is old goes round for ever',
        edits: [
          [
            exactly('local is_news = change.id and math.abs(os.time() * 1000 - change.ms) < TOLD_ON_MS'),
            'local is_news = true',
          ],
        ],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'changes of a page that has too many are lost',
        edits: [[exactly('return wait_for_turn(item, { ms = ms, word = word, key = key }) end'), 'return nil end']],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'a drain does not wait for what waits for its turn',
        edits: [[exactly('late_words > 0 or '), REMOVED]],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'a drain waits for what other pods have said',
        edits: [[exactly('if change and change.word then late_words'), 'if change and false then late_words']],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'a flood of changes keeps a page out of the cache',
        edits: [[exactly('if not budget:may(key, now) then'), 'if false then']],
        caughtBy: 'lua: cache-purging.lua',
      },
    ],
  ],
  [
    'cache/changes.lua',
    [
      {
        name: 'who has missed too much is not told so',
        edits: [[exactly('if number + 1 < self.first then return'), 'if false then return']],
        caughtBy: 'lua: cache-changes.lua',
      },
    ],
  ],
  [
    'pooling/answering.lua',
    [
      {
        name: 'a pod does not hear what others tell',
        edits: [[exactly('if purging then purging.hear('), 'if false then purging.hear(']],
        caughtBy: 'cache-purge: a successful change',
      },
    ],
  ],
  [
    'purge.c',
    [
      {
        name: 'a tag has no pages',
        edits: [[exactly('tags[row].buckets[bucket / 8] |= 1 << bucket % 8;'), ';']],
        caughtBy: 'cache-purge: an application purges',
      },
      {
        name: 'a render that began before its tag was purged stays',
        edits: [[exactly('    (void) purge_bucket(bucket, 0);\n'), REMOVED]],
        caughtBy: 'cache-purge: a page that is being rendered',
      },
      {
        name: 'a page that was rendered since has no tag any more',
        edits: [[exactly(' && purge_bucket(bucket, ms)) {'), ') {\n      (void) purge_bucket(bucket, ms);']],
        caughtBy: 'cache: a change that nginx hears of twice',
      },
      {
        name: 'a path is what a list says, letter for letter',
        edits: [[exactly('  *path = target.uri;'), '  path->data = from;\n  path->len = end - from;']],
        caughtBy: 'cache: purge: a path',
      },
      {
        name: 'what was changed comes back from its home',
        edits: [[exactly('if (path_ms > changed_ms(bucket)) {'), 'if (0) {']],
        caughtBy: 'cache-shared: what was purged here does not come back from a home that has not heard of it: a page',
      },
      {
        name: 'what a purged tag has had comes back from its home',
        edits: [[exactly('if (tags_ms > epochs.tags_ms) {'), 'if (0) {']],
        caughtBy: 'cache-shared: what was purged here does not come back from a home that has not heard of it: a tag',
      },
    ],
  ],
];

export const purge: Mutant[] = all.flatMap(([file, breakages]) =>
  breakages.map((one): Mutant => ({ ...one, breaks: 'cache', file })),
);
