-- How many slots of this pod are free, and how much waits in it.
local drain = require('drain')

return function(settings, borrowed)
  local line, slots
  local worker_servers = {}
  local capacity = {}

  core.register_init(function()
    line = core.backends['line']
    slots = line.servers['slots']
    -- HAProxy makes a new object for each server whenever one walks through them.
    for name, server in pairs(core.backends['workers'].servers) do
      if name:match('^worker%-') then worker_servers[#worker_servers + 1] = server end
    end
  end)

  -- Requests that wait for a slot, wherever it is.
  function capacity.waiting()
    return line:get_stats().qcur or 0
  end

  -- Those that wait for one of this pod.
  function capacity.waiting_here()
    return slots:get_pend_conn()
  end

  -- All that waits in this pod, wherever it does.
  function capacity.queue_length(fetches)
    local late = settings['hand-over'] == 1 and fetches:queue('late') or 0
    return fetches:queue('line') + late + fetches:queue('workers') + fetches:fe_conn('waiting-room')
  end

  -- Not what `slots` has connections for: a request that has just left the queue is not connected yet, and to count its
  -- slot as free would make the next one wait in the queue, from where it could be handed over a second time.
  local function slots_not_taken(in_line)
    local taken = in_line
    for _, slot in ipairs(borrowed) do taken = taken - slot.server:get_cur_sess() end
    return slots:get_maxconn() - taken
  end

  -- Free slots, reserved ones among them.
  function capacity.free_slots(fetches)
    return math.min(slots_not_taken(fetches:be_conn('line') - fetches:queue('line')), fetches:be_conn_free('workers'))
  end

  -- Whether more slots are free than are reserved; for a task, which has no fetches, and only where a slot seems to be
  -- free: the figures cost more here.
  function capacity.has_more_than(reserved)
    if slots:get_cur_sess() >= slots:get_maxconn() or drain.is_draining() then return false end
    local stats = line:get_stats()
    if stats.qcur > 0 or slots_not_taken(stats.scur) <= reserved then return false end
    local taken, places, least = 0, 0, math.huge
    for _, server in ipairs(worker_servers) do
      local limit = server:get_maxconn()
      taken, places, least = taken + server:get_cur_sess(), places + limit, math.min(least, limit)
    end
    -- Those that are down have the least (moving-limits.lua).
    local down = #worker_servers - core.backends['workers-up']:get_srv_act()
    return places - least * down - taken > reserved
  end

  return capacity
end
