-- Purges cached pages in all pods (docs/cache.md): in this one at once, and in those that it knows as soon as they
-- answer. What another pod says was changed is purged in the same way.
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

-- Each page is purged at once so many times, and then once in a second, whoever has it purged: no flood of changes
-- keeps it out of the cache.
local EACH = { burst = 5, per_second = 1 }
local UNBOUNDED = { burst = math.huge, per_second = function() return 0 end }
local LATE_MS = 1000

-- While nginx does not answer; beyond it all pages go.
local ITEMS_MAX = 4096

-- Changes are put together for so long before others are told: a question is one for all of them.
local TELL_MS = 100
-- What a pod is told that was not known before: its cache may be older than what this pod knows of it.
local UNKNOWN_MS = 10000
-- Where a pod does not know all others, it tells so many of them what it has heard.
local TOLD_ON_MAX = 8
local HEARD_MAX, HEARD_MS = 8192, 600000

-- Of what a peer says.
local ID_BYTES_MAX = 64
local MS_DIGITS_MAX = 15

local purging = {}

-- Where nginx listens; nil if there is no cache.
local port
-- What pooling.lua has: nothing where pods do not know each other.
local peers

local function new_batch() return { items = {}, has = {}, ms = 0 } end

local function collect(batch, item, ms)
  batch.ms = math.max(batch.ms, ms)
  if batch.has[item] or batch.has['*'] then return end
  if #batch.items >= ITEMS_MAX then
    batch.items, batch.has, item = {}, {}, '*'
  end
  batch.items[#batch.items + 1], batch.has[item] = item, true
end

-- For nginx of this pod, and for others.
local own, news = new_batch(), new_batch()
-- Number of the batch that is collected for nginx, and of the last one that it has purged.
local collected, done = 1, 0
local wake = core.queue()
local changes, heard = new_changes(), new_recent(HEARD_MAX, HEARD_MS)
local count, last_ms = 0, 0
local budget = new_budget(EACH, UNBOUNDED)
-- Items that wait for their turn: { ms, is_news }.
local late = {}

-- Purges an item in this pod, and tells others if it `is_news`: whether that is done at once.
local function purge(item, ms, is_news)
  local now = now_ms()
  if not budget:may(item, now) then
    local before = late[item]
    late[item] = { ms = math.max(ms, before and before.ms or 0), is_news = is_news or before and before.is_news }
    return false
  end
  budget:spend(item, now)
  collect(own, item, ms)
  if is_news and peers then collect(news, item, ms) end
  if wake:size() == 0 then wake:push(true) end
  return true
end

local function purge_each(items, ms, is_news)
  local is_one_now = false
  for _, item in ipairs(items) do is_one_now = purge(item, ms, is_news) or is_one_now end
  return is_one_now and collected or nil
end

-- Purges items that were changed at `wall_ms`. Gives what to wait for, or nil if all of them have to wait for their
-- turn; and the time of the change, by which pods know it.
function purging.purge(items, wall_ms)
  last_ms = math.max(wall_ms, last_ms + 1)
  return purge_each(items, last_ms, true), last_ms
end

-- Waits until nginx has purged: whether it has, in time.
function purging.wait_for(batch)
  local limit, pause = now_ms() + ANSWER_MS_MAX, 1
  while done < batch and now_ms() < limit do
    core.msleep(pause)
    pause = math.min(2 * pause, POLL_MS_MAX)
  end
  return done >= batch
end

local function milliseconds(text)
  return (text or ''):match('^%d+$') and #text <= MS_DIGITS_MAX and tonumber(text) or 0
end

-- Purges what another pod says was changed. Gives what to wait for, or nil.
function purging.hear(ms, text)
  local items, wrong = list.read({ text or '' })
  if not wrong then return purge_each(items, milliseconds(ms), false) end
end

-- The same of a change with an id, which may come more than once.
function purging.hear_once(id, ms, text)
  local now = now_ms()
  if not port or not (id or ''):match('^%x+%-%d+$') or #id > ID_BYTES_MAX or heard:get(id, now) then return end
  heard:add(id, true, now)
  purging.hear(ms, text)
  if not peers.is_crowded() then return end
  local to, left = {}, TOLD_ON_MAX
  for peer in some(peers.known()) do
    if left == 0 then break end
    to[peer.address], left = true, left - 1
  end
  changes:add({ id = id, ms = milliseconds(ms), items = text or '', to = to }, now)
end

local function tell_nginx(text, ms)
  local headers = { ['X-Corelane-Purge'] = { text }, ['X-Corelane-Changed'] = { tostring(ms) } }
  local request = { url = 'http://127.0.0.1:' .. port .. '/purge-pod', headers = headers, timeout = ANSWER_MS_MAX }
  local ok, reply = pcall(function() return core.httpclient():post(request) end)
  -- One that has started anew has no pages of before.
  return ok and reply and reply.status and reply.status >= 200 and reply.status < 500
end

local function purge_own()
  if #own.items == 0 then return wake:pop_wait() end
  local batch, number = own, collected
  own, collected = new_batch(), collected + 1
  for _, text in ipairs(list.write(batch.items)) do
    while not tell_nginx(text, batch.ms) do core.msleep(RETRY_MS) end
  end
  done = number
end

local function purge_late()
  core.msleep(LATE_MS)
  local waiting = late
  late = {}
  for item, change in pairs(waiting) do purge(item, change.ms, change.is_news) end
end

local function new_change(items, ms)
  count = count + 1
  return { id = tokens.identity .. '-' .. count, ms = ms, items = items }
end

-- Tells a peer all that it has not heard yet, until it does not answer.
local function tell(peer)
  while not peer.is_gone do
    local change, number, is_lost = changes:next(peer.heard, now_ms())
    if is_lost then
      if not peers.tell_change(peer, new_change('*', 0)) then return end
    elseif change and (not change.to or change.to[peer.address]) and not peers.tell_change(peer, change) then
      return
    end
    if not change then
      peer.heard = changes.last
      return
    end
    peer.heard = is_lost and number - 1 or number
  end
end

local function tell_peers()
  core.msleep(TELL_MS)
  local now = now_ms()
  for _, text in ipairs(list.write(news.items)) do
    local change = new_change(text, news.ms)
    heard:add(change.id, true, now)
    changes:add(change, now)
  end
  news = new_batch()
  for _, peer in ipairs(peers.known()) do
    peer.heard = peer.heard or changes:before(UNKNOWN_MS, now)
    if not peer.is_told and peer.heard < changes.last and not peers.own_addresses[peer.address] then
      peer.is_told = true
      core.register_task(function()
        local ok, message = pcall(tell, peer)
        peer.is_told = false
        if not ok then core.log(core.warning, 'purge: ' .. tostring(message)) end
      end)
    end
  end
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
end

return purging
