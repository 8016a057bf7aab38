-- A request whose worker has died: why, and its second try. Arguments (haproxy.cfg, lua-load): key=number; first-port is 0 where workers
-- have no supervisor.

-- Workers that die together (a signal to all, no memory) do so within some 0.1 s. A second try that meets the next of
-- them is lost, so it waits until none has died for so long, but not for one that dies again and again.
local CALM_MS = 100
local CALM_WAIT_MS_MAX = 1000
local CALM_LOOK_MS = 10
-- A supervisor answers within a millisecond or two, but on a machine that stalls it may get no CPU for long. The client waits
-- for an answer meanwhile.
local BEGUN_MS_MAX = 1000

-- A kill by the watchdog has been noted before it: the answer is there at once, or the supervisor is in trouble as well.
local WHY_MS_MAX = 500

local settings = corelane_settings('second-tries.lua', { ... }, { 'first-port' })

local function deaths()
  local count = 0
  for _, server in pairs(core.backends['workers'].servers) do count = count + (server:get_stats().chkdown or 0) end
  return count
end

local calm_at_ms = 0
local is_watching = false

-- One for all that wait: figures of servers are dear.
local function watch_deaths()
  local before = deaths()
  while corelane_now_ms() < calm_at_ms do
    core.msleep(CALM_LOOK_MS)
    local now = deaths()
    if now ~= before then calm_at_ms = corelane_now_ms() + CALM_MS end
    before = now
  end
  is_watching = false
end

-- Holds the second try of a request. That it comes tells of a death, which HAProxy may see later.
core.register_action('wait_until_calm', { 'http-req' }, function()
  local begin_ms = corelane_now_ms()
  calm_at_ms = begin_ms + CALM_MS
  if not is_watching then
    is_watching = true
    core.register_task(watch_deaths)
  end
  while corelane_now_ms() < calm_at_ms and corelane_now_ms() - begin_ms < CALM_WAIT_MS_MAX do core.msleep(CALM_LOOK_MS) end
end)

-- Asks the supervisor of the worker that has died (txn.died): its reply, or nil.
local function ask_supervisor(txn, page, query, ms_max)
  local index = tonumber((txn:get_var('txn.died') or ''):match('^worker%-(%d+)$'))
  local id = txn:get_var('txn.id')
  if settings['first-port'] == 0 or not index or not id or not id:match('^[%w._-]+$') then return nil end
  local url = 'http://127.0.0.1:' .. settings['first-port'] + index .. page .. id .. query
  local ok, reply = pcall(function() return core.httpclient():get({ url = url, timeout = ms_max }) end)
  return ok and reply and reply.status == 200 and reply or nil
end

local function header(reply, name)
  local values = reply.headers[name]
  return values and (values[0] or values[1])
end

-- Sets txn.stuck, to the place, if the watchdog has killed the worker because of this request. Where the worker had more than one, nobody
-- knows whose fault it was: one that would be given to another worker is, once.
core.register_action('ask_why_it_died', { 'http-res' }, function(txn)
  local reply = ask_supervisor(txn, '/why/', '', WHY_MS_MAX)
  local place = reply and header(reply, 'x-corelane-stuck')
  if not place then return end
  local is_sole = header(reply, 'x-corelane-stuck-requests') == '1'
  if is_sole or txn:get_var('txn.only_once') or txn:get_var('txn.is_second_try') then txn:set_var('txn.stuck', place) end
end)

-- A worker (txn.died) has died with a request that may not be rendered twice. Its supervisor knows whether it was begun; if it
-- was not, txn.unbegun is set. No answer, or another one than "no", sets nothing.
core.register_action('ask_whether_begun', { 'http-res' }, function(txn)
  local came_ms = tonumber(txn:get_var('txn.came_ms'))
  if not came_ms then return end
  local age_ms = math.max(0, corelane_now_ms() - came_ms)
  local reply = ask_supervisor(txn, '/begun/', '?ms=' .. age_ms, BEGUN_MS_MAX)
  if reply and reply.body == 'no\n' then txn:set_var('txn.unbegun', true) end
end)
