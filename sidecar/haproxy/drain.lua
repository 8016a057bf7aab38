-- The pod is to end: from the mark of a preStop hook until nobody has a request any more. sidecar/README.md has the
-- order.
local live = require('live.values')
local now_ms = require('clock')
local supervisors = require('supervisors')

local DRAINING_MARK = '/run/corelane/drain/begun'
-- The hooks of all other containers wait for it, and kubelet sends them SIGTERM then (sidecar/drain).
local OVER_MARK = '/run/corelane/drain/over'
local FORGOTTEN_MARK = '/run/corelane/forgotten'
local NGINX_STOPPED_MARK = '/run/corelane/nginx-stopped'
local DRAINED_MARK = '/run/corelane/drained'
-- nginx adds a byte or two for each file that it serves while the pod drains.
local LATE_ASSETS = '/run/corelane/late-assets'
-- Readiness sees a drain at most this much later.
local POLL_MS = 50
-- A worker says four times a second what it runs: two such looks after HAProxy's last request it has said so.
local SAID_MS = 500

local settings
local draining_since_ms = nil
-- Nginx accepts no more, and drain.timeout counts, from here on.
local forgotten_since_ms = nil
-- Since when HAProxy has had nothing, or a worker has run a handler last.
local idle_since_ms = nil

local function exists(path)
  local file = io.open(path, 'r')
  if file then file:close() end
  return file ~= nil
end

local function make(path)
  local file = io.open(path, 'w')
  if file then file:close() end
end

-- Conditions under which the pod must not end yet, beside requests in progress.
local holds = {}

local function is_held()
  for _, is_needed in ipairs(holds) do
    if is_needed() then return true end
  end
  return false
end

-- Requests from peers as well. Not what frontend `peers` has: those may be kept connections without a question.
local function in_progress()
  local count = core.frontends['front']:get_stats().scur
  for _, name in ipairs({ 'line', 'late' }) do
    local backend = core.backends[name]
    count = count + (backend and backend:get_stats().scur or 0)
  end
  return count
end

-- Handlers go on when their clients have left, and HAProxy does not count those.
local function is_idle()
  if in_progress() > 0 or is_held() then
    idle_since_ms = nil
    return false
  end
  idle_since_ms = idle_since_ms or now_ms()
  if supervisors.count == 0 then return true end
  if now_ms() - idle_since_ms < SAID_MS then return false end
  -- Another pod may have sent a request meanwhile.
  if not supervisors.run_handlers() then return in_progress() == 0 and not is_held() end
  idle_since_ms = now_ms()
  return false
end

local function drained()
  if not forgotten_since_ms then return false end
  if now_ms() - forgotten_since_ms >= live['drain-timeout-ms'] then return true end
  -- A request whose body is still arriving is in nginx only; and while nginx accepts there may be a next one.
  if not exists(NGINX_STOPPED_MARK) or not is_idle() then return false end
  -- The entry point need not wait for a graceful stop: one waits up to a second for the connection to DNS (HAProxy
  -- 3.0.11).
  make(DRAINED_MARK)
  return true
end

-- Bytes that nginx has noted; 0 where it serves no files.
local function late_assets()
  local file = io.open(LATE_ASSETS, 'r')
  if not file then return 0 end
  local size = file:seek('end')
  file:close()
  return size
end

---- The drain ----

local function drain()
  draining_since_ms = now_ms()
  core.log(core.notice, 'draining')

  -- An endpoint list that is late is known by the requests that it still sends. The hook of nginx waits for the mark,
  -- and makes it when they do not cease.
  local front = core.frontends['front']
  local function seen() return front:get_stats().req_tot + late_assets() end
  local requests, quiet_since_ms = seen(), draining_since_ms
  while exists(DRAINING_MARK) and not exists(FORGOTTEN_MARK) do
    core.msleep(POLL_MS)
    local total = seen()
    if total ~= requests then
      requests, quiet_since_ms = total, now_ms()
    elseif now_ms() - quiet_since_ms >= settings['drain-delay-ms'] then
      make(FORGOTTEN_MARK)
    end
  end
  forgotten_since_ms = now_ms()
  while exists(DRAINING_MARK) do
    -- Once more where the mark could not be made: a disk may be full for a while.
    if not exists(OVER_MARK) and drained() then make(OVER_MARK) end
    core.msleep(POLL_MS)
  end
  draining_since_ms, forgotten_since_ms = nil, nil
  idle_since_ms = nil
  core.log(core.notice, 'no longer draining')
end

-- A container that kubelet starts anew, because of a probe, removes the mark that the hook of the one before it has
-- made.
local function watch()
  while true do
    -- Not by a HAProxy that comes back in the middle of a drain.
    if not exists(DRAINING_MARK) then
      os.remove(FORGOTTEN_MARK)
      os.remove(DRAINED_MARK)
      os.remove(OVER_MARK)
    end
    while not exists(DRAINING_MARK) do core.msleep(POLL_MS) end
    drain()
  end
end

local function is_draining()
  return draining_since_ms ~= nil
end
core.register_fetches('corelane_draining', is_draining)

return {
  is_draining = is_draining,

  -- The pod does not end while `is_needed()` is true, within drain.timeout.
  hold_while = function(is_needed) holds[#holds + 1] = is_needed end,

  -- How long the pod has accepted nothing any more; nil if it accepts.
  ms_since_forgotten = function() return forgotten_since_ms and now_ms() - forgotten_since_ms end,

  start = function(arguments)
    settings = arguments
    core.register_task(watch)
  end,
}
