-- When a request came, by the clock of `now`: a stage before has noted the machine's (X-Corelane-Came-Ms).
local wall_ms = require('wall-clock')

return function(txn, now)
  local came_ms = tonumber(txn.f:req_fhdr('X-Corelane-Came-Ms'))
  return came_ms and now - math.max(0, wall_ms(txn) - came_ms) or now
end
