-- How many workers of this pod there are.

local function up()
  return core.backends['workers-up']:get_srv_act()
end

-- Those that take no requests because renders that were given up have all their places are there all the same, as their
-- supervisors say. Where there are no supervisors only workers that are up count.
local function alive()
  local backend = core.backends['workers-alive']
  return up() + (backend and backend:get_srv_act() or 0)
end

return { up = up, alive = alive }
