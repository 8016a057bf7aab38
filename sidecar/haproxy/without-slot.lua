-- Requests that go on without a render slot: streams, and downloads whose clients read slowly. The supervisor of a
-- worker says how many it has in the agent check of "workers-alive", as a limit of connections, which means nothing
-- else there: one more than there are, because 0 would be no limit.
local without_slot = { max = 0 }
local servers = {}

function without_slot.start(settings) without_slot.max = settings['without-slot-max'] end

-- HAProxy makes a new object for each server whenever one walks through them.
core.register_init(function()
  local backend = core.backends['workers-alive']
  for name, server in pairs(backend and backend.servers or {}) do servers[name] = server end
end)

-- Of the worker with this name. Its container is the user's, and may say any number.
function without_slot.of(name)
  local server = servers[name]
  return server and math.min(math.max(server:get_maxconn() - 1, 0), without_slot.max) or 0
end

return without_slot
