-- How many requests workers get at a time, as the live settings say (`concurrency`). A number holds for each of them.
-- With Auto each worker's supervisor says in its agent check how many (`maxconn`), and HAProxy adds nothing up. Here
-- the queue, and what comes from peers (late), get as many places as the workers have together, so that hardly anybody
-- waits in the second stage.
local live = require('live.values')
local now_ms = require('clock')

-- A worker may idle for so long although somebody waits, or somebody waits for so long where nobody sees him leave.
local LOOK_MS = 50

-- A larger number counts so much later: the supervisors read it for themselves, and what they do not know of yet would
-- wait in the worker.
local RAISE_MS = 750

local worker_servers, entrances = {}, {}
-- The number that counts, and since when there is a larger one.
local fixed, larger_since = nil, nil

-- HAProxy makes a new object for each server whenever one walks through them.
core.register_init(function()
  for name, server in pairs(core.backends['workers'].servers) do
    if name:match('^worker%-') then worker_servers[#worker_servers + 1] = server end
  end
  for _, name in ipairs({ 'line', 'late' }) do
    local backend = core.backends[name]
    if backend then entrances[#entrances + 1] = backend.servers['slots'] end
  end
end)

-- Of the bounds a supervisor may know a moment later. Its container is the user's, though, and 0 would be no limit.
local function wanted(limit)
  if fixed then return fixed end
  return math.min(math.max(limit, live['concurrency-min']), live['concurrency-max'])
end

local function places_of(server)
  local limit = server:get_maxconn()
  local places = wanted(limit)
  if places ~= limit then server:set_maxconn(places) end
  return places
end

local function fix()
  local number = live['concurrency'] > 0 and live['concurrency'] or nil
  if fixed and number and number > fixed then
    larger_since = larger_since or now_ms()
    if now_ms() - larger_since < RAISE_MS then return end
  end
  fixed, larger_since = number, nil
end

local function look()
  fix()
  local places = 0
  for _, server in ipairs(worker_servers) do places = places + places_of(server) end
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
