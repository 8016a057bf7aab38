-- Purges cached pages (docs/cache.md): nginx of this pod first, then the other pods (purge-peers.lua). Purges of other
-- pods go to nginx in the same way.
--
-- HAProxy interrupts a coroutine after 10,000 instructions of Lua, and runs others meanwhile. So a loop over items
-- yields by itself every few items, where all tables are consistent; HAProxy then counts from 0 again.
local drain = require('drain')
local list = require('cache.purge-list')
local new_batch = require('cache.purge-batch')
local new_budget = require('budget')
local new_recent = require('recent')
local now_ms = require('clock')
local purge_peers = require('cache.purge-peers')
local rendezvous = require('cache.rendezvous')
local tokens = require('peers.tokens')

-- nginx answers within a millisecond. On a machine that stalls it may get no CPU for longer.
local ANSWER_MS_MAX = 1000
local RETRY_MS = 250
local POLL_MS_MAX = 20
-- A peer ejects this pod if it does not answer within 200 ms.
local RECEIVE_MS_MAX = 100

-- An item is purged five times at once, then once a second. Further purges of the item are deferred. So a flood of
-- changes does not keep a page out of the cache.
local EACH = { burst = 5, per_second = 1 }
local ITEMS_MAX = 16384
local KEY_BYTES_MAX = 128
local DEFERRED_MS = 1000
-- If more items are deferred, one purge of all pages replaces them.
local DEFERRED_MAX = 4096
-- If more bytes wait for an nginx that does not answer, one purge of all pages replaces them.
local PENDING_BYTES_MAX = 1024 * 1024

local ITEMS_PER_YIELD = 8

-- Stamps that this pod has seen. A purge can arrive by several ways, and counts once.
local STAMPS_MAX, STAMP_MS = 16384, 600000

local purging = { ANSWER_MS_MAX = ANSWER_MS_MAX }

-- Port of nginx; nil if there is no cache.
local port

-- The batch for nginx that is being collected, its number, and the number of the last batch that nginx has purged.
local pending, pending_number, purged_number = new_batch(), 1, 0
local is_nginx_down = false
local wake = core.queue()
local stamps = new_recent(STAMPS_MAX, STAMP_MS)
local last_ms = 0
local budget = new_budget(EACH, nil, ITEMS_MAX)
-- Deferred purges: { ms, entry, key } by item. `order` has the items, from `order_first` to `order_last`.
-- `unsent_count` of them have an entry for peers.
local deferred, order, order_first, order_last, unsent_count = {}, {}, 1, 0, 0

local function key_of(item)
  if #item <= KEY_BYTES_MAX then return item end
  local key = #item .. ' ' .. rendezvous.hash(item)
  core.yield()
  return key
end

local function yield_at(index)
  if index % ITEMS_PER_YIELD == 1 then core.yield() end
end

-- The entry of an item for other pods. No other change of this process has the same stamp.
local function stamped(item, ms)
  local stamp = tokens.identity .. '.' .. ms
  -- A relay may bring it back.
  stamps:add(stamp, true, now_ms())
  return stamp .. ':' .. item
end

local function take_deferred(item)
  local purge = deferred[item]
  deferred[item] = nil
  if purge and purge.entry then unsent_count = unsent_count - 1 end
  return purge
end

local function defer(item, purge)
  if order_last - order_first + 1 >= DEFERRED_MAX then
    deferred, order, order_first, order_last, unsent_count = {}, {}, 1, 0, 0
    last_ms = last_ms + 1
    item, purge = '*', { ms = last_ms, entry = stamped('*', last_ms), key = '*' }
  end
  order_last = order_last + 1
  deferred[item], order[order_last] = purge, item
  if purge.entry then unsent_count = unsent_count + 1 end
end

-- Purges an item. `entry` is what peers get; nil if the purge is of another pod. Returns the number of the batch that
-- nginx gets, or nil if the purge is deferred.
local function purge(item, ms, entry, key)
  key = key or key_of(item)
  local now, before = now_ms(), deferred[item]
  if not budget:may(key, now) then
    if not before then return defer(item, { ms = ms, entry = entry, key = key }) end
    if entry and not before.entry then unsent_count = unsent_count + 1 end
    before.ms, before.entry = math.max(ms, before.ms), entry or before.entry
    return nil
  end
  budget:spend(key, now)
  take_deferred(item)
  if before then ms, entry = math.max(ms, before.ms), entry or before.entry end
  if pending.bytes > PENDING_BYTES_MAX then
    pending = new_batch()
    pending:add('*', '0:*')
  end
  if not pending.entries['*'] then pending:add(item, ms .. ':' .. item) end
  if entry then purge_peers.add(item, entry) end
  if wake:size() == 0 then wake:push(true) end
  return pending_number
end

-- Purges items that were changed at `wall_ms`. Returns the number of the batch that nginx gets, or nil if all items are
-- deferred; and the entries for other pods.
function purging.purge(items, wall_ms)
  local sent, number = {}, nil
  for index, item in ipairs(items) do
    yield_at(index)
    last_ms = math.max(wall_ms, last_ms + 1)
    sent[index] = stamped(item, last_ms)
    number = purge(item, last_ms, sent[index]) or number
  end
  return number, table.concat(sent, ',')
end

-- Waits until nginx has purged a batch. Returns whether it has, within `ms_max`. Stops waiting if nginx does not
-- answer: an nginx that hangs serves no page, and one that starts has an empty cache.
function purging.wait_for(number, ms_max)
  local limit, pause = now_ms() + (ms_max or ANSWER_MS_MAX), 1
  while purged_number < number and not is_nginx_down and now_ms() < limit do
    core.msleep(pause)
    pause = math.min(2 * pause, POLL_MS_MAX)
  end
  return purged_number >= number
end

local function receive_one(change)
  local now = now_ms()
  if change.stamp then
    if stamps:get(change.stamp, now) then return end
    stamps:add(change.stamp, true, now)
    purge_peers.relay(change.entry, change.ms)
  end
  purge(change.item, change.ms)
end

-- Purges what another pod sends, and waits for nginx. It also waits if the purge came before by another way, and nginx
-- is still at it.
function purging.receive(text, ms_max)
  if not port then return end
  local received = list.read_stamped(text or '')
  for index, change in ipairs(received) do
    yield_at(index)
    receive_one(change)
  end
  local number = pending:is_empty() and pending_number - 1 or pending_number
  if #received > 0 then purging.wait_for(number, ms_max or RECEIVE_MS_MAX) end
end

local function post_to_nginx(text)
  local headers = { ['X-Corelane-Purge'] = { text } }
  local request = { url = 'http://127.0.0.1:' .. port .. '/purge-pod', headers = headers, timeout = ANSWER_MS_MAX }
  local ok, reply = pcall(function() return core.httpclient():post(request) end)
  return ok and reply and reply.status and reply.status >= 200 and reply.status < 500
end

local function purge_pending()
  if pending:is_empty() then return wake:pop_wait() end
  local batch, number = pending, pending_number
  pending, pending_number = new_batch(), pending_number + 1
  for _, text in ipairs(batch:lists()) do
    while not post_to_nginx(text) do
      is_nginx_down = true
      core.msleep(RETRY_MS)
    end
  end
  is_nginx_down, purged_number = false, number
end

-- Tries each deferred purge once. `purge` defers it again if the item has no budget yet.
local function purge_deferred()
  core.msleep(DEFERRED_MS)
  for index = 1, order_last - order_first + 1 do
    yield_at(index)
    local item = order[order_first]
    if not item then return end
    order[order_first], order_first = nil, order_first + 1
    local change = take_deferred(item)
    if change then purge(item, change.ms, change.entry, change.key) end
  end
end

-- `nginx_port`: port of nginx for purges of this pod.
function purging.start(nginx_port)
  local forever = require('pooling.forever')
  port = nginx_port
  forever(purge_pending)
  forever(purge_deferred)
  -- Before the hold of purge-peers.lua, which gets these purges next.
  drain.hold_while(function() return unsent_count > 0 and purge_peers.has_peers() end)
end

return purging
