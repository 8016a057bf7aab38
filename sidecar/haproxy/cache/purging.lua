-- Purges cached pages in all pods (docs/cache.md): in this one at once, and in those that it knows as soon as they
-- answer. What another pod says was changed is purged in the same way.
local drain = require('drain')
local list = require('cache.purge-list')
local new_budget = require('stickiness.budget')
local new_changes = require('cache.changes')
local new_recent = require('stickiness.recent')
local now_ms = require('clock')
local some = require('pooling.some')
local tokens = require('peers.tokens')

-- nginx answers within a millisecond, but on a machine that stalls it may get no CPU for long.
local ANSWER_MS_MAX = 1000
local RETRY_MS = 250
local POLL_MS_MAX = 20
-- A peer has an answer within 200 ms, or takes this pod for dead.
local HEAR_MS_MAX = 100

-- Each page is purged at once so many times, and then once in a second, whoever has it purged: no flood of changes
-- keeps it out of the cache.
local EACH = { burst = 5, per_second = 1 }
local UNBOUNDED = { burst = math.huge, per_second = function() return 0 end }
local KEY_BYTES = 128
local LATE_MS = 1000

-- Changes are put together for so long before others are told: a question is one for all of them.
local TELL_MS = 100
-- What a pod is told that was not known before: its cache may be older than what this pod knows of it.
local UNKNOWN_MS = 10000
-- How far each pod has heard, for those that go away for a while because they are not ready.
local PODS_MAX, POD_MS = 1024, 86400000
-- Where a pod does not know all others, it tells so many of them what it has heard.
local TOLD_ON_MAX = 8
local HEARD_MAX, HEARD_MS = 16384, 600000

-- While nginx does not answer; beyond it all pages go.
local WAITING_BYTES_MAX = 1024 * 1024

local purging = {}

-- Where nginx listens; nil if there is no cache.
local port
-- What pooling.lua has: nothing where pods do not know each other.
local peers

-- Words by their items.
local function new_batch() return { items = {}, words = {}, bytes = 0 } end

local function collect(batch, item, word)
  if not batch.words[item] then
    batch.items[#batch.items + 1], batch.bytes = item, batch.bytes + #word
  end
  batch.words[item] = word
end

local function lists_of(batch)
  local words = {}
  for index, item in ipairs(batch.items) do words[index] = batch.words[item] end
  return list.write(words)
end

-- For nginx of this pod; of this pod, for others; of others, for others.
local own, news, gossip = new_batch(), new_batch(), new_batch()
-- Number of the batch that is collected for nginx, and of the last one that it has purged.
local collected, done = 1, 0
local is_nginx_away = false
local wake = core.queue()
local changes, heard = new_changes(), new_recent(HEARD_MAX, HEARD_MS)
local positions = new_recent(PODS_MAX, POD_MS)
-- When lists of changes were added, the latest last: { number, at }.
local marks = {}
local last_ms = 0
local budget = new_budget(EACH, UNBOUNDED)
-- Items that wait for their turn: { ms, word }.
local late = {}

-- Purges an item in this pod, and tells others its `word` if there is one: whether that is done at once.
local function purge(item, ms, word)
  local now, key = now_ms(), item:sub(1, KEY_BYTES)
  if not budget:may(key, now) then
    local before = late[item]
    late[item] = { ms = math.max(ms, before and before.ms or 0), word = word or before and before.word }
    return false
  end
  budget:spend(key, now)
  if own.bytes > WAITING_BYTES_MAX then
    own, item, ms = new_batch(), '*', 0
  end
  if not own.words['*'] then collect(own, item, ms .. ':' .. item) end
  if word and peers then collect(news, item, word) end
  if wake:size() == 0 then wake:push(true) end
  return true
end

-- Purges items that were changed at `wall_ms`. Gives what to wait for, or nil if all of them have to wait for their
-- turn; and the words by which other pods know them.
function purging.purge(items, wall_ms)
  local words, is_one_now = {}, false
  for index, item in ipairs(items) do
    last_ms = math.max(wall_ms, last_ms + 1)
    words[index] = tokens.identity .. '.' .. last_ms .. ':' .. item
    is_one_now = purge(item, last_ms, words[index]) or is_one_now
  end
  return is_one_now and collected or nil, table.concat(words, ',')
end

-- Waits until nginx has purged: whether it has, in time. One that is away has no pages when it comes back, or none that
-- anybody gets before it is told.
function purging.wait_for(batch, ms_max)
  local limit, pause = now_ms() + (ms_max or ANSWER_MS_MAX), 1
  while done < batch and not is_nginx_away and now_ms() < limit do
    core.msleep(pause)
    pause = math.min(2 * pause, POLL_MS_MAX)
  end
  return done >= batch
end

-- Purges what another pod says was changed, once, and waits for that.
function purging.hear(text)
  if not port then return end
  local now, is_one_now = now_ms(), false
  for _, change in ipairs(list.read_stamped(text or '')) do
    if not change.id or not heard:get(change.id, now) then
      if change.id then
        heard:add(change.id, true, now)
        if peers and peers.is_crowded() then collect(gossip, change.text, change.text) end
      end
      is_one_now = purge(change.item, change.ms) or is_one_now
    end
  end
  if is_one_now then purging.wait_for(collected, HEAR_MS_MAX) end
end

local function tell_nginx(text)
  local headers = { ['X-Corelane-Purge'] = { text } }
  local request = { url = 'http://127.0.0.1:' .. port .. '/purge-pod', headers = headers, timeout = ANSWER_MS_MAX }
  local ok, reply = pcall(function() return core.httpclient():post(request) end)
  return ok and reply and reply.status and reply.status >= 200 and reply.status < 500
end

local function purge_own()
  if #own.items == 0 then return wake:pop_wait() end
  local batch, number = own, collected
  own, collected = new_batch(), collected + 1
  for _, text in ipairs(lists_of(batch)) do
    while not tell_nginx(text) do
      is_nginx_away = true
      core.msleep(RETRY_MS)
    end
  end
  is_nginx_away, done = false, number
end

local function purge_late()
  core.msleep(LATE_MS)
  local waiting = late
  late = {}
  for item, change in pairs(waiting) do purge(item, change.ms, change.word) end
end

-- Each list has its number from here on.
local function add_news()
  local now = now_ms()
  for _, text in ipairs(lists_of(news)) do
    changes:add(text)
    marks[#marks + 1] = { number = changes.last, at = now }
  end
  news = new_batch()
  while marks[1] and marks[1].at + UNKNOWN_MS <= now do table.remove(marks, 1) end
end

-- How far a peer has heard.
local function position_of(peer)
  peer.heard = peer.heard or positions:get(peer.address, now_ms()) or marks[1] and marks[1].number - 1 or changes.last
  return peer.heard
end

-- Tells a peer all that it has not heard yet: whether it has heard that.
local function tell(peer)
  while not peer.is_gone do
    local text, number = changes:next(position_of(peer))
    if not text then return true end
    if not peers.tell_change(peer, text) then return false end
    peer.heard = math.max(peer.heard, number)
    positions:add(peer.address, peer.heard, now_ms())
  end
  return false
end

-- Whether a peer has heard of all changes of this pod, if need be because it is told now.
function purging.catch_up(peer)
  add_news()
  return position_of(peer) >= changes.last or tell(peer)
end

local function is_behind(peer)
  return not peers.own_addresses[peer.address] and position_of(peer) < changes.last
end

-- Begins to tell a peer, unless somebody does.
local function begin_to_tell(peer)
  core.register_task(function()
    if peer.is_told then return end
    peer.is_told = true
    local ok, message = pcall(tell, peer)
    peer.is_told = false
    if not ok then core.log(core.warning, 'purge: ' .. tostring(message)) end
  end)
end

-- By chance: each that has not heard of it tells others in its turn.
local function tell_on()
  local lists, left = lists_of(gossip), TOLD_ON_MAX
  gossip = new_batch()
  if #lists == 0 then return end
  for peer in some(peers.known()) do
    if left == 0 then break end
    if not peers.own_addresses[peer.address] then
      left = left - 1
      core.register_task(function()
        for _, text in ipairs(lists) do pcall(peers.tell_change, peer, text) end
      end)
    end
  end
end

local function tell_peers()
  core.msleep(TELL_MS)
  add_news()
  tell_on()
  for _, peer in ipairs(peers.known()) do
    if is_behind(peer) and not peer.is_told then begin_to_tell(peer) end
  end
  peers.close_unused()
end

-- Whether a pod that answers has not heard of a change yet.
local function has_news()
  if #news.items > 0 or next(late) then return true end
  for _, peer in ipairs(peers.known()) do
    if is_behind(peer) then return true end
  end
  return false
end

-- `nginx_port`: where it takes purges of this pod.
function purging.start(nginx_port)
  local forever = require('pooling.forever')
  port = nginx_port
  forever(purge_own)
  forever(purge_late)
end

-- `all`: the other pods, as pooling.lua has them.
function purging.start_peers(all)
  peers = all
  require('pooling.forever')(tell_peers)
  drain.hold_while(has_news)
end

return purging
