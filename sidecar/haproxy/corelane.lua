-- What HAProxy 3.0 cannot do by itself: begin with all workers down, wait for a worker, wait for the end of a drain.
-- Arguments (haproxy.cfg, lua-load): key=value, times in milliseconds.

local DRAINING_MARK = '/run/corelane/draining'
local FORGOTTEN_MARK = '/run/corelane/forgotten'
local NGINX_STOPPED_MARK = '/run/corelane/nginx-stopped'
local DRAINED_MARK = '/run/corelane/drained'
-- A request sees a worker that came up, and readiness sees a drain, at most this much later.
local POLL_MS = 50
-- How often one looks whether the supervisors have been asked for the first time.
local ASKED_LOOK_MS = 20
-- After a start readiness waits so long for a worker: less than kubelet waits for its probe (2 s).
local FIRST_WORKER_MS = 1500

-- Arguments of a file as a table: numbers, but for those that are named in `texts`. For the files that are loaded after
-- this one, too.
function corelane_settings(file, arguments, keys, texts)
  local settings = {}
  for _, argument in ipairs(arguments) do
    local key, value = argument:match('^([%w-]+)=(%g+)$')
    if key and not (texts and texts[key]) then value = tonumber(value) end
    if not value then error(file .. ': argument "' .. argument .. '" is not key=value') end
    settings[key] = value
  end
  for _, key in ipairs(keys) do
    if not settings[key] then error(file .. ': argument ' .. key .. ' is missing') end
  end
  return settings
end

local settings = corelane_settings(
  'corelane.lua',
  { ... },
  { 'drain-delay-ms', 'drain-timeout-ms', 'queue-timeout-ms', 'waiters-max', 'stranger-waiters-max' }
)

local started_ms = nil
local draining_since_ms = nil
-- Nginx accepts no more, and drain.timeout counts, from here on.
local forgotten_since_ms = nil

function corelane_now_ms()
  local now = core.now()
  return now.sec * 1000 + now.usec // 1000
end

-- What several coroutines wait for: `wait()` returns when somebody calls `wake()`. So it costs one look, whoever has it, and
-- not one for each that waits.
function corelane_news()
  local waiting = {}
  return {
    wait = function()
      local queue = core.queue()
      waiting[#waiting + 1] = queue
      queue:pop_wait()
    end,
    wake = function()
      local woken = waiting
      waiting = {}
      for _, queue in ipairs(woken) do queue:push(true) end
    end,
  }
end

local function exists(path)
  local file = io.open(path, 'r')
  if file then file:close() end
  return file ~= nil
end

local function make(path)
  local file = io.open(path, 'w')
  if file then file:close() end
end

local function workers_up()
  return core.backends['workers-up']:get_srv_act()
end

-- Those that take no requests because renders that were given up have all their places are there all the same, and as their supervisors
-- say: where there are none, only workers that are up count.
-- Global: pooling.lua wants to know as well.
function corelane_workers_alive()
  local alive = core.backends['workers-alive']
  return workers_up() + (alive and alive:get_srv_act() or 0)
end

-- HAProxy assumes a server up until its first check, and 3.0 has no init-state: readiness would lie, and the first
-- requests would run into closed ports. A task, because servers cannot be marked while the configuration is parsed.
-- A port that is open says nothing about a worker that is stuck, or not warm yet: it counts when the agent has been asked,
-- whatever came of it.
core.register_task(function()
  started_ms = corelane_now_ms()
  local unasked = {}
  for _, name in ipairs({ 'workers', 'workers-alive' }) do
    for _, server in pairs(core.backends[name] and core.backends[name].servers or {}) do
      if server:get_name() ~= 'waiting-room' then
        server:check_force_down()
        if server:get_stats().agent_status then
          server:check_disable()
          unasked[#unasked + 1] = server
        end
      end
    end
  end
  while #unasked > 0 do
    core.msleep(ASKED_LOOK_MS)
    for index = #unasked, 1, -1 do
      if not unasked[index]:get_stats().agent_status:find('INI') then
        unasked[index]:check_enable()
        table.remove(unasked, index)
      end
    end
  end
end)

-- Nor is anybody guarded who has not said so.
core.register_task(function()
  local backend = core.backends['workers-guarded']
  for _, server in pairs(backend and backend.servers or {}) do server:check_force_down() end
end)

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
  if corelane_now_ms() - forgotten_since_ms >= settings['drain-timeout-ms'] then return true end
  -- A request whose body is still arriving is in nginx only; and while nginx accepts there may be a next one.
  if not exists(NGINX_STOPPED_MARK) or in_progress() > 0 then return false end
  -- The entry point need not wait for a graceful stop: one waits up to a second for the connection to DNS (HAProxy 3.0.11).
  make(DRAINED_MARK)
  return true
end

-- preStop hooks that wait: `{ news, limit_ms, is_stranger }`.
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
  local now_ms = corelane_now_ms()
  for hook in pairs(hooks) do
    if now_ms >= hook.limit_ms then release(hook) end
  end
end

local function release_all_hooks()
  for hook in pairs(hooks) do release(hook) end
end

local function drain()
  draining_since_ms = corelane_now_ms()
  core.log(core.notice, 'draining')

  -- An endpoint list that is late is known by the requests that it still sends. The hook of nginx waits for the mark, and
  -- makes it when they do not cease.
  local front = core.frontends['front']
  local requests, quiet_since_ms = front:get_stats().req_tot, draining_since_ms
  while exists(DRAINING_MARK) and not exists(FORGOTTEN_MARK) do
    core.msleep(POLL_MS)
    local total = front:get_stats().req_tot
    if total ~= requests then
      requests, quiet_since_ms = total, corelane_now_ms()
    elseif corelane_now_ms() - quiet_since_ms >= settings['drain-delay-ms'] then
      make(FORGOTTEN_MARK)
    end
  end
  forgotten_since_ms = corelane_now_ms()
  while exists(DRAINING_MARK) do
    if next(hooks) and drained() then release_all_hooks() end
    core.msleep(POLL_MS)
  end
  draining_since_ms, forgotten_since_ms = nil, nil
  core.log(core.notice, 'no longer draining')
end

-- A container that kubelet starts anew, because of a probe, removes the mark that the hook of the one before it has made.
core.register_task(function()
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
end)

-- Global: pooling.lua wants to know as well.
function corelane_draining()
  return draining_since_ms ~= nil
end
core.register_fetches('corelane_draining', corelane_draining)

-- Holds a readiness probe that comes before the supervisors could answer: of a HAProxy that has died and is back, "no worker"
-- would be a guess, and two of these make the pod NotReady.
-- One task looks for all of them: a neighbour may send thousands.
local first_worker, looks_for_first_worker = corelane_news(), false

local function look_for_first_worker(limit_ms)
  looks_for_first_worker = true
  core.register_task(function()
    while corelane_workers_alive() == 0 and not draining_since_ms and corelane_now_ms() < limit_ms do core.msleep(POLL_MS) end
    looks_for_first_worker = false
    first_worker.wake()
  end)
end

core.register_action('wait_for_first_worker', { 'http-req' }, function()
  local limit_ms = (started_ms or corelane_now_ms()) + FIRST_WORKER_MS
  if corelane_now_ms() >= limit_ms then return end
  if not looks_for_first_worker then look_for_first_worker(limit_ms) end
  first_worker.wait()
end)

-- Holds a request until a worker is up, or until the queue time-out is over since it came; txn.waited_ms tells how long it was. Where pods
-- share their work another pod may have it meanwhile (txn.peer), but for one that has come from there, and for a WebSocket.
core.register_action('wait_for_worker', { 'http-req' }, function(txn)
  local begin_ms = corelane_now_ms()
  local may_leave = corelane_find_peer and not txn.f:req_fhdr('X-Corelane-Handed-Over') and not txn.f:req_fhdr('Upgrade')
  local came_ms = math.min(begin_ms, tonumber(txn.f:req_fhdr('X-Corelane-Came-Ms')) or begin_ms)
  while workers_up() == 0 and corelane_now_ms() - came_ms < settings['queue-timeout-ms'] do
    local peer, ticket, proof
    if may_leave then peer, ticket, proof = corelane_find_peer() end
    if peer then
      txn:set_var('txn.peer', peer)
      txn:set_var('txn.ticket', ticket)
      txn:set_var('txn.proof', proof)
      break
    end
    core.msleep(POLL_MS)
  end
  txn:set_var('txn.waited_ms', corelane_now_ms() - begin_ms)
end)

-- Holds a preStop hook until the pod has drained, which drain.timeout bounds. The task above looks for all of them. A place is
-- some 20 kB, so there is a number of them; strangers (`txn.is_stranger`) have few of their own, and take none from kubelet.
core.register_action('wait_for_drain', { 'http-req' }, function(txn)
  if drained() then return end
  local is_stranger = txn:get_var('txn.is_stranger') ~= nil
  local count, count_max = hooks_count, settings['waiters-max']
  if is_stranger then count, count_max = strangers_count, settings['stranger-waiters-max'] end
  if count >= count_max then
    txn:set_var('txn.crowded', true)
    return
  end
  local patience_ms = settings['drain-delay-ms'] + settings['drain-timeout-ms'] + 5000
  local hook = { news = core.queue(), limit_ms = corelane_now_ms() + patience_ms, is_stranger = is_stranger }
  hooks[hook] = true
  if is_stranger then
    strangers_count = strangers_count + 1
  else
    hooks_count = hooks_count + 1
  end
  hook.news:pop_wait()
end)
