-- Quarantine: refuses URLs whose requests get workers stuck. A URL may cost this pod `kills` workers (2) within
-- `window`. Then the pod refuses it for `duration`, unless the URL is answered more often than it gets workers stuck.
-- While a URL has no answer, at most so many of its requests are in workers, less one for each kill; the others are
-- held here. Stick tables (haproxy.cfg) count requests and answers, quarantine/suspects.lua counts kills.
-- docs/adr/0023 has the reasons. Arguments (haproxy.cfg, lua-load): key=number.
local kills = require('kills')
local live = require('live.values')
local new_suspects = require('quarantine.suspects')
local now_ms = require('clock')
local silence = require('quarantine.silence')
local supervisors = require('supervisors')

-- ACLs of haproxy.cfg: URLs that got a worker stuck lately, and what is refused: a URL, or a URL and a client.
local ACLS = { suspect = 'virt@suspects', refused = 'virt@refused' }
local SWEEP_MS = 1000
-- A request is held for so long, and then as long as a worker is silent.
local UNKNOWN_MS = 1000
local LOOK_MS = 50
-- Between a first try and its second one a request is counted nowhere for a moment.
local LOOKS = 2
-- So many may be held, a quarter of them by one client. HAProxy ends the coroutine of a held request with its stream,
-- without a word: a request that has not looked for so long is gone. Few enough to be counted in one go.
local HELD_MAX = 400
local CLIENT_SHARE = 4
local GONE_MS = 1000

local settings = require('settings')('quarantine.lua', { ... }, {
  'kills', 'window-ms', 'duration-ms', 'held-ms-max',
})

local function counted(name, url)
  return core.backends[name].stktable:lookup(url) or {}
end

local function answered(url)
  local counts = counted('urls', url)
  return counts.gpc0, counts.gpc0_rate
end

local function change_acl(what, key, is_in)
  if is_in then core.add_acl(ACLS[what], key) else core.del_acl(ACLS[what], key) end
end

local suspects = new_suspects(settings, answered, change_acl)

local function note_kill(url, client, worker, requests, at)
  suspects:note_kill(url, client, worker .. ' ' .. at, requests, now_ms())
end
kills.on_kill(note_kill)

-- A worker has died with a request whose client may have gone.
core.register_action('note_death', { 'http-after-res' }, function(txn)
  local url, client = txn:get_var('txn.url'), txn:get_var('txn.client')
  local worker, id = txn:get_var('txn.died'), txn:get_var('txn.id')
  core.register_task(function()
    local place, requests, at = supervisors.why_it_died(worker, id)
    if place then note_kill(url, tostring(client), worker, requests, at) end
  end)
end)

-- Requests that have been let through, here and by peers; of those whose clients have gone, only those that are being
-- rendered.
local function at_large(url)
  return math.max(counted('urls-asked', url).conn_cur or 0, counted('urls', url).conn_cur or 0)
end

local function must_wait(url, client)
  return not suspects:is_refused(url, client) and suspects:is_one_too_many(url, client, at_large, now_ms())
end

-- Whether all workers have been heard since the request came, and since another request was let go for that reason.
-- After a kill that does not count any more.
local let_go_at_ms = -math.huge

local function is_quiet(url, begin_ms)
  if #suspects:recent(url, now_ms()) > 0 then return false end
  return silence.quiet_at_ms() >= math.max(begin_ms + UNKNOWN_MS, let_go_at_ms)
end

-- Held requests: { client, looked_ms } by transaction.
local held = {}

-- Whether there is a place for one more request of this client.
local function has_place(client, now)
  local all, own = 0, 0
  for txn, request in pairs(held) do
    if now - request.looked_ms >= GONE_MS then
      held[txn] = nil
    else
      all = all + 1
      if request.client == client then own = own + 1 end
    end
  end
  local count_max = math.min(live['queue-length-max'], HELD_MAX)
  return all < count_max and own < math.ceil(count_max / CLIENT_SHARE)
end

-- Holds a request until it cannot get one worker too many stuck, or until its URL is refused. Sets txn.held to the
-- reason if neither happens in time.
core.register_action('hold_if_suspect', { 'http-req' }, function(txn)
  local url, client = txn:get_var('txn.url'), tostring(txn:get_var('txn.client'))
  if not must_wait(url, client) then return end
  local begin_ms = now_ms()
  if not has_place(client, begin_ms) then
    txn:set_var('txn.held', 'queue-full')
    return
  end
  local own, looks = { client = client, looked_ms = begin_ms }, 0
  held[txn] = own
  repeat
    core.msleep(LOOK_MS)
    own.looked_ms = now_ms()
    looks = must_wait(url, client) and 0 or looks + 1
    local waited_ms = own.looked_ms - begin_ms
    if waited_ms >= UNKNOWN_MS then silence.survey() end
    if looks == 0 and is_quiet(url, begin_ms) then
      let_go_at_ms = own.looked_ms
      break
    end
    if looks < LOOKS and waited_ms >= settings['held-ms-max'] then
      txn:set_var('txn.held', 'queue-timeout')
      break
    end
  until looks >= LOOKS
  held[txn] = nil
end)

core.register_task(function()
  while true do
    core.msleep(SWEEP_MS)
    suspects:sweep(now_ms())
  end
end)
