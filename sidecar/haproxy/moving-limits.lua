-- How many requests workers get at a time, as the live settings say (`concurrency`). A number holds for each of them,
-- and each worker gets one more for each request that goes on without a slot. With Auto each worker's supervisor says
-- in its agent check how many (`maxconn`), these among them, and HAProxy adds nothing up. Here the queue, and what
-- comes from peers (late), get as many places as the workers have together, so that hardly anybody waits in the second
-- stage.
local live = require('live.values')
local now_ms = require('clock')
local without_slot = require('without-slot')

-- A worker may idle for so long although somebody waits, or somebody waits for so long where nobody sees him leave.
local LOOK_MS = 50

-- A larger number counts so much later: the supervisors read it for themselves, and what they do not know of yet would
-- wait in the worker.
local RAISE_MS = 750

local worker_servers, entrances = {}, {}
-- By name of a setting: the value that counts, and since when there is a larger one.
local counted, larger_since = {}, {}

-- HAProxy makes a new object for each server whenever one walks through them.
core.register_init(function()
  for name, server in pairs(core.backends['workers'].servers) do
    if name:match('^worker%-') then worker_servers[#worker_servers + 1] = { name = name, server = server } end
  end
  for _, name in ipairs({ 'line', 'late' }) do
    local backend = core.backends[name]
    if backend then entrances[#entrances + 1] = backend.servers['slots'] end
  end
end)

local function setting(name)
  local value, before = live[name], counted[name]
  if before and value > before then
    larger_since[name] = larger_since[name] or now_ms()
    if now_ms() - larger_since[name] < RAISE_MS then return before end
  end
  counted[name], larger_since[name] = value, nil
  return value
end

-- Of the bounds a supervisor may know a moment later. Its container is the user's, though, and 0 would be no limit.
local function wanted(limit, name)
  local number = setting('concurrency')
  if number > 0 then return number + without_slot.of(name) end
  return math.min(math.max(limit, setting('concurrency-min')), live['concurrency-max'] + without_slot.max)
end

local function places_of(worker)
  local limit = worker.server:get_maxconn()
  local places = wanted(limit, worker.name)
  if places ~= limit then worker.server:set_maxconn(places) end
  return places
end

local function look()
  local places = 0
  for _, worker in ipairs(worker_servers) do places = places + places_of(worker) end
  for _, slots in ipairs(entrances) do
    if slots:get_maxconn() ~= places then slots:set_maxconn(places) end
  end
end

core.register_task(function()
  while true do
    look()
    core.msleep(LOOK_MS)
  end
end)
