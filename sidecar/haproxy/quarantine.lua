-- URLs whose requests get workers stuck. `kills` workers (2) is all that a URL may cost within `window`, unless it is answered more often than
-- that: so many of its requests are let through at once, less one for each that has been killed, and none for `duration` when nothing is left.
-- Stick tables (haproxy.cfg) count requests and answers; this file counts kills, of which there are few. docs/adr/0023-quarantine.md has the
-- reasons. Arguments (haproxy.cfg, lua-load): key=number.

-- ACLs of haproxy.cfg: URLs that have got a worker stuck lately, and what is refused: a URL, or a URL and a client.
local SUSPECTS, REFUSED = 'virt@suspects', 'virt@refused'
-- A watchdog kills no worker more often than twice a second. Beyond it nothing is noted.
local ENTRIES_MAX = 20000
local SWEEP_MS = 1000
-- A request that may be one too many waits so long, and longer as long as a worker is silent: its supervisor hears it four times a second.
local UNKNOWN_MS = 1000
local SILENT_MS = 500
local LOOK_MS = 50
local LOOKS = 2
-- Between two times that the supervisors are asked for that.
local SURVEY_MS = 200
local ANSWER_MS_MAX = 200

local settings = corelane_settings('quarantine.lua', { ... }, {
  'kills', 'window-ms', 'duration-ms', 'stall-ms', 'held-max', 'held-ms-max', 'workers', 'first-port',
})
local now_ms = corelane_now_ms

local kills = {} -- by URL: { at_ms, worker, client, share, answered }, the oldest first
local refused = {} -- by key of the ACL: when that ends
local entries = 0

local function figures(name, url)
  return core.backends[name].stktable:lookup(url) or {}
end

-- The kills that count.
local function recent(url)
  local list = kills[url]
  if not list then return {} end
  while list[1] and now_ms() - list[1].at_ms >= settings['window-ms'] do
    table.remove(list, 1)
    entries = entries - 1
  end
  if #list == 0 then
    kills[url] = nil
    core.del_acl(SUSPECTS, url)
  end
  return list
end

-- Whether it is fine for most: answered more often than killed since the first of these kills began. What was before does not count, for a
-- page that many see may be broken from now on. Before a kill any answer will do.
local function is_fine(url, list)
  local answered = figures('urls', url).gpc0 or 0
  -- The table has forgotten the URL meanwhile.
  if list[1] and answered < list[1].answered then list[1].answered = 0 end
  return answered - (list[1] and list[1].answered or 0) > #list
end

-- What is left of `kills` for this client. One client's kills are one for all others: what a stranger does to himself he cannot do to them.
local function credit(list, client)
  local own, by_client, all = 0, {}, 0
  for _, kill in ipairs(list) do
    if kill.client == client then own = own + kill.share end
    by_client[kill.client] = math.max(by_client[kill.client] or 0, kill.share)
  end
  for _, share in pairs(by_client) do all = all + share end
  return settings['kills'] - math.max(own, all), settings['kills'] - all
end

local function refuse(key)
  if not refused[key] then entries = entries + 1 end
  refused[key] = now_ms() + settings['duration-ms']
  core.add_acl(REFUSED, key)
end

-- The watchdog has killed a worker because of a request. Told twice where the client has waited for it.
-- Where the worker had several requests nobody knows which it was: each is a part of a kill.
function corelane_note_kill(url, client, worker, requests)
  local list = recent(url)
  for _, kill in ipairs(list) do
    if kill.worker == worker and now_ms() - kill.at_ms < settings['stall-ms'] then return end
  end
  if entries >= ENTRIES_MAX then return end
  local counted = figures('urls', url)
  local answered = (counted.gpc0 or 0) - (counted.gpc0_rate or 0)
  list[#list + 1] = { at_ms = now_ms(), worker = worker, client = client, share = 1 / requests, answered = answered }
  kills[url], entries = list, entries + 1
  core.add_acl(SUSPECTS, url)
  if is_fine(url, list) then return end
  local left, left_for_all = credit(list, client)
  if left_for_all <= 0 then
    refuse(url)
  elseif left <= 0 then
    refuse(url .. ' ' .. client)
  end
end

-- A worker has died with a request whose client may have gone.
core.register_action('note_death', { 'http-after-res' }, function(txn)
  local url, client, worker, id = txn:get_var('txn.url'), txn:get_var('txn.client'), txn:get_var('txn.died'), txn:get_var('txn.id')
  core.register_task(function()
    local place, requests = corelane_why_it_died(worker, id)
    if place then corelane_note_kill(url, tostring(client), worker, requests) end
  end)
end)

---- One too many ----

-- Whether the supervisor has heard nothing of its worker's event loop for a while. One that has no time to answer
-- does not know; one that is not there says nothing.
local function is_silent(index)
  local begin_ms = now_ms()
  local url = 'http://127.0.0.1:' .. settings['first-port'] + index .. '/silence'
  local ok, reply = pcall(function() return core.httpclient():get({ url = url, timeout = ANSWER_MS_MAX }) end)
  -- One that is starting, say, is not stuck.
  if ok and reply and reply.status == 200 then return (tonumber(reply.body) or reply.body:match('^stalled') and math.huge or 0) >= SILENT_MS end
  return now_ms() - begin_ms >= ANSWER_MS_MAX
end

-- When all workers were last asked, and none was silent; one survey for all who wait.
local quiet_at_ms, is_surveying = -math.huge, false

local function survey()
  if is_surveying then return end
  is_surveying = true
  core.register_task(function()
    local begin_ms, silent = now_ms(), false
    for index = 0, settings['workers'] - 1 do silent = silent or is_silent(index) end
    if not silent then quiet_at_ms = begin_ms end
    core.msleep(SURVEY_MS)
    is_surveying = false
  end)
end

-- Requests that have been let through, here and by peers; of those whose clients have gone, only those that are being rendered.
local function at_large(url)
  return math.max(figures('urls-asked', url).conn_cur or 0, figures('urls', url).conn_cur or 0)
end

local function is_one_too_many(url, client)
  local list = recent(url)
  return not is_fine(url, list) and at_large(url) >= credit(list, client)
end

-- Whether all workers have been seen to be well since the request came, and since another one was let go for that. Where a worker has been
-- killed that does not count any more.
local let_go_at_ms = -math.huge

local function is_quiet(url, begin_ms)
  return #recent(url) == 0 and quiet_at_ms - math.max(begin_ms + UNKNOWN_MS, let_go_at_ms) >= 0
end

---- Places of those who are held ----

-- Nobody is told that a client has gone: its requests keep their places until the hold is over. So whoever has most of them makes room.
local held, held_count = {}, 0 -- by transaction: { own, seen_ms }; the places that are taken
local clients = {} -- by client: { client, count, out }: its places, and how many of its requests have lost theirs and do not know it yet

local function add_places(own, by)
  own.count, held_count = own.count + by, held_count + by
  clients[own.client] = own.count + own.out > 0 and own or nil
end

local function who_has_most()
  local found
  for _, own in pairs(clients) do
    if not found or own.count > found.count then found = own end
  end
  return found
end

-- Takes a place for a request, that of somebody else if need be; false if there is none.
local function hold(txn, client)
  local own = clients[client] or { client = client, count = 0, out = 0 }
  if held_count >= settings['held-max'] then
    local other = who_has_most()
    if not other or other.count <= own.count + 1 then return false end
    other.out = other.out + 1
    add_places(other, -1)
  end
  add_places(own, 1)
  held[txn] = { own = own, seen_ms = now_ms() }
  return true
end

local function is_out(txn)
  return held[txn] ~= nil and held[txn].own.out > 0
end

local function let_go(txn)
  if not held[txn] then return end
  local own = held[txn].own
  held[txn] = nil
  if own.out == 0 then return add_places(own, -1) end
  own.out = own.out - 1
  add_places(own, 0)
end

-- Holds a request as long as it might get one worker too many stuck. Sets txn.held if that has not come to an end.
core.register_action('hold_if_suspect', { 'http-req' }, function(txn)
  local url, client = txn:get_var('txn.url'), tostring(txn:get_var('txn.client'))
  if not is_one_too_many(url, client) then return end
  if not hold(txn, client) then
    txn:set_var('txn.held', 'queue-full')
    return
  end
  local begin_ms = now_ms()
  local looks = 0
  repeat
    core.msleep(LOOK_MS)
    if held[txn] then held[txn].seen_ms = now_ms() end
    local waited_ms = now_ms() - begin_ms
    -- Between a first try and a second one it seems for a moment that there is none.
    looks = is_one_too_many(url, client) and 0 or looks + 1
    local is_settled = refused[url] or refused[url .. ' ' .. client] or looks >= LOOKS
    local is_over = not is_settled and waited_ms >= settings['held-ms-max']
    if waited_ms >= UNKNOWN_MS then survey() end
    local may_be_fine = not is_settled and is_quiet(url, begin_ms)
    if may_be_fine then let_go_at_ms = now_ms() end
  until is_settled or is_over or may_be_fine or is_out(txn)
  if is_over then
    txn:set_var('txn.held', #recent(url) > 0 and 'poison' or 'too-long')
  elseif is_out(txn) and not is_settled and not may_be_fine then
    txn:set_var('txn.held', 'queue-full')
  end
  let_go(txn)
end)

core.register_task(function()
  while true do
    core.msleep(SWEEP_MS)
    for url in pairs(kills) do recent(url) end
    for key, ends_ms in pairs(refused) do
      if now_ms() >= ends_ms then
        refused[key], entries = nil, entries - 1
        core.del_acl(REFUSED, key)
      end
    end
    -- A stream that ends takes its coroutine along.
    for txn, place in pairs(held) do
      if now_ms() - place.seen_ms >= SWEEP_MS then let_go(txn) end
    end
  end
end)
