-- URLs whose requests get workers stuck. `kills` workers (2) is all that a URL may cost within `window`, unless it is
-- answered more often than that: so many of its requests are let through at once, less one for each that has been
-- killed, and none for `duration` when nothing is left. Stick tables (haproxy.cfg) count requests and answers;
-- quarantine/ counts kills, of which there are few. docs/adr/0023 has the reasons. Arguments (haproxy.cfg, lua-load):
-- key=number.
local kills = require('kills')
local live = require('live.values')
local new_places = require('quarantine.places')
local new_suspects = require('quarantine.suspects')
local now_ms = require('clock')
local silence = require('quarantine.silence')
local supervisors = require('supervisors')

-- ACLs of haproxy.cfg: URLs that have got a worker stuck lately, and what is refused: a URL, or a URL and a client.
local ACLS = { suspect = 'virt@suspects', refused = 'virt@refused' }
local SWEEP_MS = 1000
-- A request that may be one too many waits so long, and longer as long as a worker is silent.
local UNKNOWN_MS = 1000
local LOOK_MS = 50
local LOOKS = 2

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
local places = new_places(function() return live['queue-length-max'] end)

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

local function is_one_too_many(url, client)
  return suspects:is_one_too_many(url, client, at_large, now_ms())
end

-- Whether all workers have been seen to be well since the request came, and since another one was let go for that.
-- Where a worker has been killed that does not count any more.
local let_go_at_ms = -math.huge

local function is_quiet(url, begin_ms)
  if #suspects:recent(url, now_ms()) > 0 then return false end
  return silence.quiet_at_ms() - math.max(begin_ms + UNKNOWN_MS, let_go_at_ms) >= 0
end

-- Holds a request as long as it might get one worker too many stuck. Sets txn.held if that has not come to an end.
core.register_action('hold_if_suspect', { 'http-req' }, function(txn)
  local url, client = txn:get_var('txn.url'), tostring(txn:get_var('txn.client'))
  if not is_one_too_many(url, client) then return end
  if not places:take(txn, client, now_ms()) then
    txn:set_var('txn.held', 'queue-full')
    return
  end
  local begin_ms = now_ms()
  local looks = 0
  local is_settled, is_over, may_be_fine, is_out
  repeat
    core.msleep(LOOK_MS)
    local waited_ms = now_ms() - begin_ms
    -- Between a first try and a second one it seems for a moment that there is none.
    looks = is_one_too_many(url, client) and 0 or looks + 1
    is_settled = suspects:is_refused(url, client) or looks >= LOOKS
    is_over = not is_settled and waited_ms >= settings['held-ms-max']
    if waited_ms >= UNKNOWN_MS then silence.survey() end
    may_be_fine = not is_settled and is_quiet(url, begin_ms)
    if may_be_fine then let_go_at_ms = now_ms() end
    is_out = places:is_out(txn, now_ms())
  until is_settled or is_over or may_be_fine or is_out
  if is_over then
    txn:set_var('txn.held', 'too-long')
  elseif is_out and not is_settled and not may_be_fine then
    txn:set_var('txn.held', 'queue-full')
  end
  places:give_back(txn)
end)

core.register_task(function()
  while true do
    core.msleep(SWEEP_MS)
    suspects:sweep(now_ms())
    places:sweep(now_ms(), SWEEP_MS)
  end
end)
