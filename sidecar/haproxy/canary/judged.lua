-- What a canary is judged by, on the page :8999/canary: of each side what became of its requests, and how long renders
-- took. Counted in the pod that has decided, once for each request, when it is answered or lost. docs/canary.md tells
-- what counts.
local live = require('live.values')
local new_recent = require('recent')

local judged = {}

-- Nobody has failed: there was no place, which says how much there is to do and not how good the revision is.
local REFUSALS = { ['queue-full'] = true, ['queue-timeout'] = true }
-- Who has a place, or a name, is on his side by what he sends, and so by his own choice if he likes. That he has failed
-- is told by his name, once in so long, so that he is one for all pods. Of his answers so many count, which says how
-- much is known, and nothing for or against anybody.
local KNOWN_MAX = 4096
local KNOWN_MS = 600000
local ANSWERS_MAX = 100
local FAILED_MAX = 32

-- Of a request: nobody has chosen its side; anybody could have.
judged.CHANCE, judged.UNKNOWN = '', '-'

-- An eighth of an octave each: bucket N has renders of up to 2^(N/8) ms (operator/src/rollout/render-times.ts).
local PER_OCTAVE = 8
local LAST_BUCKET = 136

local function none() return { requests = 0, errors = 0, times = {}, seen = 0, failed = {} } end

local revision, sides
-- Whoever has counted on from here knows by this that it has begun anew.
local epoch = nil
local clients

local function begin(new_revision)
  revision, sides = new_revision, { canary = none(), stable = none() }
  clients = new_recent(KNOWN_MAX, KNOWN_MS)
end
begin(nil)

function judged.start(new_epoch) epoch = new_epoch end

-- What is to be known of a request when it is answered. `who`: by what one knows who has sent it, in hexadecimal
-- digits, CHANCE or UNKNOWN.
function judged.name(side, who)
  return ('%s %d %s'):format(side, live['canary-revision'] or 0, who)
end

function judged.side_of(name) return name:match('^%l+') end

-- The counts for a request, and who has sent it; nil where it counts nowhere, or another canary is under way since it
-- came.
local function counts_for(name)
  local side, of, who = name:match('^(%l+) (%d+) (.*)$')
  local now = live['canary-revision']
  if not sides[side] or tonumber(of) ~= now or who == judged.UNKNOWN then return nil end
  if revision ~= now then begin(now) end
  return sides[side], who
end

-- An answer for a client who is on this side by what he sends.
local function note_client(counts, name, who, is_error, now_ms)
  local client = clients:get(name, now_ms)
  if not client then
    client = { answers = 0, has_failed = false }
    clients:add(name, client, now_ms)
  end
  if client.answers < ANSWERS_MAX then counts.seen = counts.seen + 1 end
  client.answers = client.answers + 1
  if not is_error or client.has_failed then return end
  client.has_failed = true
  table.insert(counts.failed, who)
  if #counts.failed > FAILED_MAX then table.remove(counts.failed, 1) end
end

-- What became of a request: the counts, if it is here by chance.
local function note(name, is_error, now_ms)
  local counts, who = counts_for(name)
  if not counts then return nil end
  if who ~= judged.CHANCE then return note_client(counts, name, who, is_error, now_ms) end
  counts.requests = counts.requests + 1
  if is_error then counts.errors = counts.errors + 1 end
  return counts
end

function judged.bucket_of(ms)
  if ms <= 1 then return 0 end
  return math.min(LAST_BUCKET, math.ceil(PER_OCTAVE * math.log(ms, 2) - 1e-9))
end

-- Whether an answer is an error of its side.
function judged.is_error(status, reason) return status >= 500 and not REFUSALS[reason] end

-- `reason`: which proxy has made it, and why; nil if the application has. `render_ms`: what the worker took for its
-- head, without the queue; nil if no worker has.
function judged.answer(name, status, reason, render_ms, now_ms)
  if REFUSALS[reason] then return end
  local is_error = status >= 500
  local counts = note(name, is_error, now_ms)
  local digits = render_ms and render_ms:match('^%d%d?%d?%d?%d?%d?%d?%d?%d?$')
  if not counts or is_error or not digits then return end
  local bucket = judged.bucket_of(tonumber(digits))
  counts.times[bucket] = (counts.times[bucket] or 0) + 1
end

-- It got no answer.
function judged.lose(name, now_ms) note(name, true, now_ms) end

local function line(side)
  local counts = sides[side]
  local parts = { ('%s=%d %d'):format(side, counts.requests, counts.errors) }
  for bucket = 0, LAST_BUCKET do
    if counts.times[bucket] then parts[#parts + 1] = ('%d:%d'):format(bucket, counts.times[bucket]) end
  end
  return table.concat(parts, ' ')
end

-- Of clients that are on a side by what they send: answers, and who has failed, the latest last.
local function clients_line(side)
  local counts = sides[side]
  local parts = { ('%s-clients=%d'):format(side, counts.seen), table.unpack(counts.failed) }
  return table.concat(parts, ' ')
end

function judged.page()
  return ('epoch=%s\nrevision=%d\n%s\n%s\n%s\n%s\n'):format(
    epoch, revision or 0, line('canary'), line('stable'), clients_line('canary'), clients_line('stable')
  )
end

return judged
