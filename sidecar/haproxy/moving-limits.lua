-- `concurrency: Auto`: each worker's supervisor says in its agent check how many requests the worker gets (`maxconn`),
-- and HAProxy adds nothing up. Here the queue, and what comes from peers (late), get as many places as the workers have
-- together, so that hardly anybody waits in the second stage. Arguments (haproxy.cfg, lua-load): key=number.

local settings = require('settings')('moving-limits.lua', { ... }, { 'max' })

-- A worker may idle for so long although somebody waits, or somebody waits for so long where nobody sees him leave.
local LOOK_MS = 50

local worker_servers, entrances = {}, {}

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

-- A supervisor says 1 to max. Its container is the user's, though, and 0 would be no limit.
local function places_of(server)
  local limit = server:get_maxconn()
  if limit >= 1 and limit <= settings['max'] then return limit end
  server:set_maxconn(1)
  return 1
end

core.register_task(function()
  while true do
    core.msleep(LOOK_MS)
    local places = 0
    for _, server in ipairs(worker_servers) do places = places + places_of(server) end
    for _, slots in ipairs(entrances) do
      if slots:get_maxconn() ~= places then slots:set_maxconn(places) end
    end
  end
end)
