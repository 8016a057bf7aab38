-- A HAProxy that begins: all workers are down until they have been seen, and readiness waits for the first one.
local drain = require('drain')
local new_news = require('news')
local now_ms = require('clock')
local workers = require('workers')

-- How often one looks whether the supervisors have been asked for the first time.
local ASKED_LOOK_MS = 20
-- After a start readiness waits so long for a worker: less than kubelet waits for its probe (2 s).
local FIRST_WORKER_MS = 1500
local POLL_MS = 50

local started_ms = nil

-- HAProxy assumes a server up until its first check, and 3.0 has no init-state: readiness would lie, and the first
-- requests would run into closed ports. A task, because servers cannot be marked while the configuration is parsed. A
-- port that is open says nothing about a worker that is stuck, or not warm yet: it counts when the agent has been
-- asked, whatever came of it. Whether a worker is there only its supervisor knows: that counts when it has answered.
-- Its port opens before it is asked: on a busy node a pod whose program crashes at each start was Ready for a moment.
local function is_asked(backend, status)
  if backend == 'workers-alive' then return status:find('L7') end
  return not status:find('INI')
end

core.register_task(function()
  started_ms = now_ms()
  local unasked = {}
  for name, backend in pairs(core.backends) do
    local has_checks = name == 'workers' or name == 'workers-alive' or name:match('^class%-')
    for _, server in pairs(has_checks and backend.servers or {}) do
      if server:get_name() ~= 'waiting-room' then
        server:check_force_down()
        if server:get_stats().agent_status then
          server:check_disable()
          unasked[#unasked + 1] = { server = server, backend = name }
        end
      end
    end
  end
  while #unasked > 0 do
    core.msleep(ASKED_LOOK_MS)
    for index = #unasked, 1, -1 do
      local server = unasked[index].server
      if is_asked(unasked[index].backend, server:get_stats().agent_status) then
        server:check_enable()
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

-- Holds a readiness probe that comes before the supervisors could answer: of a HAProxy that has died and is back, "no
-- worker" would be a guess, and two of these make the pod NotReady. One task looks for all of them: a neighbour may
-- send thousands.
local first_worker, looks_for_first_worker = new_news(), false

local function look_for_first_worker(limit_ms)
  looks_for_first_worker = true
  core.register_task(function()
    while workers.alive() == 0 and not drain.is_draining() and now_ms() < limit_ms do core.msleep(POLL_MS) end
    looks_for_first_worker = false
    first_worker.wake()
  end)
end

core.register_action('wait_for_first_worker', { 'http-req' }, function()
  local limit_ms = (started_ms or now_ms()) + FIRST_WORKER_MS
  if now_ms() >= limit_ms then return end
  if not looks_for_first_worker then look_for_first_worker(limit_ms) end
  first_worker.wait()
end)
