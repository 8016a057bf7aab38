-- Free slots that are kept for somebody for a moment: for whom, and until when. Computes only.
local reservations = {}
reservations.__index = reservations

-- `keep_ms` is how long each lasts.
local function new(keep_ms)
  return setmetatable({ keep_ms = keep_ms, list = {} }, reservations)
end

-- Keeps a slot for `whose` from now on.
function reservations:add(whose, now)
  local reservation = { whose = whose, ends_at = now + self.keep_ms }
  self.list[#self.list + 1] = reservation
  return reservation
end

-- Gives up one that was taken or refused; one that is over by now changes nothing.
function reservations:release(reservation)
  for index, other in ipairs(self.list) do
    if other == reservation then
      table.remove(self.list, index)
      return
    end
  end
end

-- How many slots are kept. All last as long, so the oldest end first.
function reservations:count(now)
  while self.list[1] and self.list[1].ends_at <= now do table.remove(self.list, 1) end
  return #self.list
end

return new
