/** Breakages of cache purges: what is purged, in which pods, and who may purge it. */
import { exactly, type Mutant, REMOVED } from './mutant.ts';

/** By file. */
const all: [Mutant['file'], Omit<Mutant, 'file' | 'breaks'>[]][] = [
  [
    'haproxy.cfg',
    [
      {
        name: 'responses of workers purge nothing',
        edits: [[/ +http-response lua\.purge_changed if .*\n/g, REMOVED]],
        caughtBy: 'cache-purge: a successful change',
      },
      {
        name: "the response of a peer's worker purges nothing in the pod of the client",
        edits: [[/ +http-response lua\.purge_changed_by_peer .*\n/g, REMOVED]],
        caughtBy: 'cache-purge: a change in a worker of another pod',
      },
    ],
  ],
  [
    'nginx.conf',
    [
      {
        name: 'a URL is enough for a purge',
        edits: [[exactly('if ($http_x_corelane_purge = "")'), 'if ($http_x_corelane_purge = "x")']],
        caughtBy: 'cache: nobody purges',
      },
    ],
  ],
  [
    'purge.lua',
    [
      {
        name: 'each redirect of a POST purges its path',
        edits: [[exactly('or status == 303'), 'or status < 400']],
        caughtBy: 'cache: a stranger takes no page away with a POST that leads this method elsewhere',
      },
    ],
  ],
  [
    'cache/purge-list.lua',
    [
      {
        name: 'Location purges any path',
        edits: [[exactly('and named:sub(1, #start) == start then'), 'then']],
        caughtBy: 'cache: a stranger takes no page away',
      },
      {
        name: 'a URL in the query of Location counts as Location',
        edits: [[exactly("url:match('^%a[%w+.-]*:(//.*)$')"), "url:match('[%w+.-]*:(//.*)$')"]],
        caughtBy: 'cache: what Location names',
      },
      {
        name: 'a POST purges any page by a path that nginx resolves',
        edits: [[exactly('local own = is_plain(path) and canonical(path)'), 'local own = canonical(path)']],
        caughtBy: 'cache: a stranger takes no page away with a POST that climbs to its path',
      },
    ],
  ],
  [
    'cache/purge-peers.lua',
    [
      {
        name: 'peers do not get the purges',
        edits: [[exactly('pcall(peers.send_purges, peer, text)\n    if not ok'), 'true, true\n    if not ok']],
        caughtBy: 'cache-purge: a successful change',
      },
      {
        name: 'a peer that did not answer does not get the purge later',
        edits: [[exactly('if not ok or not is_received then break end'), 'if not ok and is_received then break end']],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'a pod forgets the offset of a peer that leaves DNS',
        edits: [[exactly('offsets:get(peer.address, now) or '), REMOVED]],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'pods relay old purges',
        edits: [[exactly('if peers and is_recent and'), 'if peers and']],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'a page does not wait for purges that another coroutine sends',
        edits: [[exactly('core.msleep(WAIT_MS)'), 'break']],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'a drain does not wait while purges are appended to the log',
        edits: [[exactly('outgoing:is_empty() or appending > 0 then'), 'outgoing:is_empty() then']],
        caughtBy: 'lua: cache-purging.lua',
      },
    ],
  ],
  [
    'cache/purging.lua',
    [
      {
        name: 'deferred purges are lost',
        edits: [[exactly('return defer(item, { ms = ms, entry = entry, key = key }) end'), 'return nil end']],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'a drain does not wait for deferred purges',
        edits: [[exactly('return unsent_count > 0 and'), 'return false and']],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'a drain waits for deferred purges of other pods',
        edits: [
          [exactly('if purge.entry then unsent_count = unsent_count + 1 end'), 'unsent_count = unsent_count + 1'],
        ],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'a flood of changes keeps a page out of the cache',
        edits: [[exactly('if not budget:may(key, now) then'), 'if false then']],
        caughtBy: 'lua: cache-purging.lua',
      },
      {
        name: 'a purge that arrives twice purges twice',
        edits: [[exactly('if stamps:get(change.stamp, now) then return end'), REMOVED]],
        caughtBy: 'lua: cache-purging.lua',
      },
    ],
  ],
  [
    'cache/purge-log.lua',
    [
      {
        name: 'a peer that missed dropped lists does not purge all',
        edits: [[exactly('if number + 1 < self.first then return'), 'if false then return']],
        caughtBy: 'lua: cache-purge-log.lua',
      },
    ],
  ],
  [
    'pooling/answering.lua',
    [
      {
        name: 'a pod ignores the purges of its peers',
        edits: [[exactly('if purging then purging.receive('), 'if false then purging.receive(']],
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
        name: 'nginx caches a page whose tag was purged during the render',
        edits: [[exactly('    (void) purge_bucket(bucket, 0);\n'), REMOVED]],
        caughtBy: 'cache-purge: a page that is being rendered',
      },
      {
        name: 'a repeated purge of a tag forgets the tag of a newer page',
        edits: [[exactly(' && purge_bucket(bucket, ms)) {'), ') {\n      (void) purge_bucket(bucket, ms);']],
        caughtBy: 'cache: a change that nginx hears of twice',
      },
      {
        name: 'nginx does not normalize the path of an item',
        edits: [[exactly('  *path = target.uri;'), '  path->data = from;\n  path->len = end - from;']],
        caughtBy: 'cache: purge: a path',
      },
      {
        name: 'a home ignores the time of the last change of a path',
        edits: [[exactly('if (path_ms > changed_ms(bucket)) {'), 'if (0) {']],
        caughtBy: 'cache-shared: what was purged here does not come back from a home that has not heard of it: a page',
      },
      {
        name: 'a home ignores the time of the last purge of a tag',
        edits: [[exactly('if (tags_ms > epochs.tags_ms) {'), 'if (0) {']],
        caughtBy: 'cache-shared: what was purged here does not come back from a home that has not heard of it: a tag',
      },
    ],
  ],
];

export const purge: Mutant[] = all.flatMap(([file, breakages]) =>
  breakages.map((one): Mutant => ({ ...one, breaks: 'cache', file })),
);
