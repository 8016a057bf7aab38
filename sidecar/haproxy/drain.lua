-- The pod is to end: from the mark of a preStop hook until nobody has a request any more. sidecar/README.md has the
-- order.
local live = require('live.values')
local now_ms = require('clock')

local DRAINING_MARK = '/run/corelane/draining'
local FORGOTTEN_MARK = '/run/corelane/forgotten'
local NGINX_STOPPED_MARK = '/run/corelane/nginx-stopped'
local DRAINED_MARK = '/run/corelane/drained'
-- nginx adds a byte or two for each file that it serves while the pod drains.
local LATE_ASSETS = '/run/corelane/late-assets'
-- Readiness sees a drain at most this much later.
local POLL_MS = 50

local settings
local draining_since_ms = nil
-- Nginx accepts no more, and drain.timeout counts, from here on.
local forgotten_since_ms = nil

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

local function drained()
  if not forgotten_since_ms then return false end
  if now_ms() - forgotten_since_ms >= live['drain-timeout-ms'] then return true end
  -- A request whose body is still arriving is in nginx only; and while nginx accepts there may be a next one.
  if not exists(NGINX_STOPPED_MARK) or in_progress() > 0 or is_held() then return false end
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

---- Hooks that wait ----

-- `{ news, limit_ms, is_stranger }`
local hooks = {}
local hooks_count, strangers_count = 0, 0

local function release(hook)
  hooks[hook] = nil
  if hook.is_stranger then
    strangers_count = strangers_count - 1
  else
    hooks_count = hooks_count - 1
  end
  hook.news:push(true)
end

-- HAProxy does not notice that a waiting client has gone: where nothing drains each wait has a limit.
local function release_late_hooks()
  local now = now_ms()
  for hook in pairs(hooks) do
    if now >= hook.limit_ms then release(hook) end
  end
end

local function release_all_hooks()
  for hook in pairs(hooks) do release(hook) end
end

-- Holds a preStop hook until the pod has drained, which drain.timeout bounds. The task below looks for all of them. A
-- place is some 20 kB, so there is a number of them; strangers (`txn.is_stranger`) have few of their own, and take none
-- from kubelet.
core.register_action('wait_for_drain', { 'http-req' }, function(txn)
  if drained() then return end
  local is_stranger = txn:get_var('txn.is_stranger') ~= nil
  local count, count_max = hooks_count, settings['waiters-max']
  if is_stranger then count, count_max = strangers_count, settings['stranger-waiters-max'] end
  if count >= count_max then
    txn:set_var('txn.crowded', true)
    return
  end
  local patience_ms = settings['drain-delay-ms'] + live['drain-timeout-ms'] + 5000
  local hook = { news = core.queue(), limit_ms = now_ms() + patience_ms, is_stranger = is_stranger }
  hooks[hook] = true
  if is_stranger then
    strangers_count = strangers_count + 1
  else
    hooks_count = hooks_count + 1
  end
  hook.news:pop_wait()
end)

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
    if next(hooks) and drained() then release_all_hooks() end
    core.msleep(POLL_MS)
  end
  draining_since_ms, forgotten_since_ms = nil, nil
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
    end
    while not exists(DRAINING_MARK) do
      release_late_hooks()
      core.msleep(POLL_MS)
    end
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
