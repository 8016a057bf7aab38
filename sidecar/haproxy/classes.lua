-- Requests that are no renders (spec.classes): which worker is the best for one, where they wait while none is up, and
-- their end when the pod drains. Arguments (haproxy.cfg, lua-load): of each class the backend, the milliseconds that
-- its requests may wait, and those that they have when the pod accepts nothing any more.
local came_at = require('came')
local drain = require('drain')
local now_ms = require('clock')
local without_slot = require('without-slot')

-- Streams are cut, and workers that come up are seen, at most this much too late.
local CUT_LOOK_MS = 100
local POLL_MS = 50

-- By backend: { queue_ms, drain_ms, workers }.
local classes = {}
local arguments = { ... }
for index = 1, #arguments, 3 do
  local queue_ms, drain_ms = tonumber(arguments[index + 1]), tonumber(arguments[index + 2])
  if not queue_ms or not drain_ms then error('classes.lua: no times for ' .. arguments[index]) end
  classes[arguments[index]] = { queue_ms = queue_ms, drain_ms = drain_ms, workers = {} }
end

-- HAProxy makes a new object for each server whenever one walks through them.
core.register_init(function()
  local slots = {}
  for name, server in pairs(core.backends['workers'].servers) do slots[name] = server end
  for backend, class in pairs(classes) do
    for name, server in pairs(core.backends[backend].servers) do
      if name:match('^worker%-') then
        class.workers[#class.workers + 1] = { name = name, server = server, slot = slots[name] }
      end
    end
  end
end)

-- Sets txn.idle_worker: of the workers with a place for one more request of this backend's class the one with the
-- fewest renders, and then the fewest requests of the class. One that renders answers nobody until it comes to an end.
-- Check and assignment are one step: one thread, and nothing here waits. Of a worker that is down `use-server` takes no
-- notice, and HAProxy balances by itself: what srv_is_up says Lua cannot ask in 3.0, and statistics are dear.
core.register_action('find_idle_worker', { 'http-req' }, function(txn, backend)
  local best, best_renders, best_taken
  for _, worker in ipairs(classes[backend].workers) do
    local taken = worker.server:get_cur_sess()
    if taken < worker.server:get_maxconn() then
      local renders = worker.slot:get_cur_sess() - without_slot.of(worker.name)
      if not best or renders < best_renders or (renders == best_renders and taken < best_taken) then
        best, best_renders, best_taken = worker, renders, taken
      end
    end
  end
  if best then txn:set_var('txn.idle_worker', best.name) end
end, 1)

-- Holds a request until a worker is up for its class, or until its time in the queue is over; txn.waited_ms tells how
-- long it was, and txn.in_vain that none is. Not by what is up for renders: the checks of each backend are its own.
core.register_action('wait_for_class', { 'http-req' }, function(txn)
  local begin_ms = now_ms()
  local backend = 'class-' .. (txn.f:req_fhdr('X-Corelane-Class') or '')
  local class = classes[backend]
  local came_ms = came_at(txn, begin_ms)
  local function is_up() return class and core.backends[backend]:get_srv_act() > 0 end
  while class and not is_up() and now_ms() - came_ms < class.queue_ms do core.msleep(POLL_MS) end
  if not is_up() then txn:set_var('txn.in_vain', true) end
  txn:set_var('txn.waited_ms', now_ms() - begin_ms)
end)

-- Ends what goes on in a class. Its clients come back to another pod.
local function cut(class)
  for _, worker in ipairs(class.workers) do
    if worker.server:get_cur_sess() > 0 then worker.server:shut_sess() end
  end
end

core.register_task(function()
  while true do
    core.msleep(CUT_LOOK_MS)
    local ms = drain.ms_since_forgotten()
    for _, class in pairs(classes) do
      if ms and ms >= class.drain_ms then cut(class) end
    end
  end
end)
