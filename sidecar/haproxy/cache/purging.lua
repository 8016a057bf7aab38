-- Purges cached pages in all pods (docs/cache.md): in this one at once, and in those that it knows as soon as they
-- answer. What another pod says was changed is purged in the same way.
local drain = require('drain')
local list = require('cache.purge-list')
local new_budget = require('stickiness.budget')
local new_changes = require('cache.changes')
local new_recent = require('stickiness.recent')
local now_ms = require('clock')
local rendezvous = require('cache.rendezvous')
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
local KEY_BYTES_MAX = 128
local PAGES_MAX = 16384
local LATE_MS = 1000
-- Beyond it all pages go.
local LATE_MAX = 4096

-- HAProxy lets others run after 10,000 instructions, wherever that is. Whoever works on many items lets them run in
-- between, where nothing is half done: the count begins anew then.
local ITEMS_AT_ONCE = 8

-- Changes are put together for so long before others are told: a question is one for all of them.
local TELL_MS = 100
-- A home that has more lists to hear of is not asked for a page.
local CATCH_UP_MAX = 64
-- How far each pod has heard, for those that go away for a while because they are not ready.
local PODS_MAX, POD_MS = 1024, 86400000
-- Where a pod does not know all others, it tells so many of them what it has heard.
local TOLD_ON_MAX = 8
local TOLD_ON_MS = 60000
local HEARD_MAX, HEARD_MS = 16384, 600000

-- While nginx does not answer; beyond it all pages go.
local WAITING_BYTES_MAX = 1024 * 1024

local purging = { ANSWER_MS_MAX = ANSWER_MS_MAX }

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
-- How many are adding to the lists right now.
local adding = 0
local last_ms = 0
local budget = new_budget(EACH, UNBOUNDED, PAGES_MAX)
-- What waits for its turn: { ms, word, key } by item; items in the order in which they came; and how many have a word.
local late, late_items, late_first, late_last, late_words = {}, {}, 1, 0, 0

local function key_of(item)
  if #item <= KEY_BYTES_MAX then return item end
  local key = #item .. ' ' .. rendezvous.hash(item)
  core.yield()
  return key
end

local function pause_at(index)
  if index % ITEMS_AT_ONCE == 1 then core.yield() end
end

-- The word of a change that this pod has seen.
local function stamped(item, ms)
  local id = tokens.identity .. '.' .. ms
  -- It may come back.
  heard:add(id, true, now_ms())
  return id .. ':' .. item
end

-- Takes an item out of those that wait.
local function take_late(item)
  local change = late[item]
  late[item] = nil
  if change and change.word then late_words = late_words - 1 end
  return change
end

local function wait_for_turn(item, change)
  if late_last - late_first + 1 >= LATE_MAX then
    late, late_items, late_first, late_last, late_words = {}, {}, 1, 0, 0
    last_ms = last_ms + 1
    item, change = '*', { ms = last_ms, word = stamped('*', last_ms), key = '*' }
  end
  late_last = late_last + 1
  late[item], late_items[late_last] = change, item
  if change.word then late_words = late_words + 1 end
end

-- Purges an item in this pod, and tells others its `word` if there is one: the number of the batch that it is in, or
-- nil if it has to wait for its turn.
local function purge(item, ms, word, key)
  key = key or key_of(item)
  local now, before = now_ms(), late[item]
  if not budget:may(key, now) then
    if not before then return wait_for_turn(item, { ms = ms, word = word, key = key }) end
    if word and not before.word then late_words = late_words + 1 end
    before.ms, before.word = math.max(ms, before.ms), word or before.word
    return nil
  end
  budget:spend(key, now)
  take_late(item)
  if before then ms, word = math.max(ms, before.ms), word or before.word end
  if own.bytes > WAITING_BYTES_MAX then
    own, item, ms = new_batch(), '*', 0
  end
  if not own.words['*'] then collect(own, item, ms .. ':' .. item) end
  if word and peers then collect(news, item, word) end
  if wake:size() == 0 then wake:push(true) end
  return collected
end

-- Purges items that were changed at `wall_ms`. Gives what to wait for, or nil if all of them have to wait for their
-- turn; and the words by which other pods know them.
function purging.purge(items, wall_ms)
  local words, batch = {}, nil
  for index, item in ipairs(items) do
    pause_at(index)
    last_ms = math.max(wall_ms, last_ms + 1)
    words[index] = stamped(item, last_ms)
    batch = purge(item, last_ms, words[index]) or batch
  end
  return batch, table.concat(words, ',')
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

local function hear_one(change)
  local now = now_ms()
  if change.id and heard:get(change.id, now) then return end
  if change.id then heard:add(change.id, true, now) end
  -- Old ones come from pods that were away for long. Told on, they could go round for ever.
  local is_news = change.id and math.abs(os.time() * 1000 - change.ms) < TOLD_ON_MS
  if is_news and peers and peers.is_crowded() then collect(gossip, change.text, change.text) end
  purge(change.item, change.ms)
end

-- Purges what another pod says was changed, once, and waits for that, be it that somebody else has said so before.
function purging.hear(text, ms_max)
  if not port then return end
  local said = list.read_stamped(text or '')
  for index, change in ipairs(said) do
    pause_at(index)
    hear_one(change)
  end
  if #said > 0 then purging.wait_for(#own.items > 0 and collected or collected - 1, ms_max or HEAR_MS_MAX) end
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

-- Those that have waited for their turn, each once.
local function purge_late()
  core.msleep(LATE_MS)
  for index = 1, late_last - late_first + 1 do
    pause_at(index)
    local item = late_items[late_first]
    if not item then return end
    late_items[late_first], late_first = nil, late_first + 1
    local change = take_late(item)
    if change then purge(item, change.ms, change.word, change.key) end
  end
end

-- Each list has its number from here on.
local function add_news()
  if #news.items == 0 then return end
  local batch = news
  news, adding = new_batch(), adding + 1
  local lists = lists_of(batch)
  core.yield()
  for _, text in ipairs(lists) do changes:add(text) end
  adding = adding - 1
end

-- How far a peer has heard. Of one that was not known nobody knows how old its pages are.
local function position_of(peer)
  local now = now_ms()
  peer.heard = peer.heard or positions:get(peer.address, now) or 0
  positions:add(peer.address, peer.heard, now)
  return peer.heard
end

-- Tells a peer what it has not heard yet, up to a number: whether it has heard that. Nobody else tells it meanwhile.
local function tell(peer, goal)
  peer.is_told = true
  while not peer.is_gone and position_of(peer) < goal do
    local text, number = changes:next(peer.heard)
    local ok, has_heard = pcall(peers.tell_change, peer, text)
    if not ok or not has_heard then break end
    peer.heard = math.max(peer.heard, number)
  end
  peer.is_told = false
  return position_of(peer) >= goal
end

-- Whether a peer has heard of all changes of this pod, if need be because it is told now.
function purging.catch_up(peer)
  add_news()
  local goal = changes.last
  local missing = goal - position_of(peer)
  if adding > 0 then return false end
  return missing <= 0 or not peer.is_told and missing <= CATCH_UP_MAX and tell(peer, goal)
end

local function is_behind(peer)
  return not peers.own_addresses[peer.address] and position_of(peer) < changes.last
end

-- Begins to tell a peer, unless somebody does.
local function begin_to_tell(peer)
  core.register_task(function()
    if not peer.is_told then tell(peer, changes.last) end
  end)
end

-- By chance: each that has not heard of it tells others in its turn.
local function tell_on()
  local batch, left = gossip, TOLD_ON_MAX
  gossip = new_batch()
  local lists = lists_of(batch)
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

-- Whether a pod that answers has not heard of a change of this one yet.
local function has_news()
  if #news.items > 0 or late_words > 0 or adding > 0 then return true end
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
