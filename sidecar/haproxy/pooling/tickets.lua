-- Tickets that were given out: each is good for one request, for some time. Computes only.
local tickets = {}
tickets.__index = tickets

-- `keep_ms` is how long one is good, `count_max` how many are kept; the oldest goes for the next.
local function new(keep_ms, count_max)
  return setmetatable({ keep_ms = keep_ms, count_max = count_max, entries = {}, issued = {} }, tickets)
end

-- Remembers what belongs to a ticket, a table.
function tickets:add(ticket, entry, now)
  local entries, issued = self.entries, self.issued
  while issued[1] and (#issued >= self.count_max or not entries[issued[1]] or entries[issued[1]].ends_at <= now) do
    entries[table.remove(issued, 1)] = nil
  end
  entry.ends_at = now + self.keep_ms
  entries[ticket], issued[#issued + 1] = entry, ticket
end

-- What belongs to a ticket, once; nil if nobody has it, or it is too old.
function tickets:take(ticket, now)
  local entry = self.entries[ticket]
  self.entries[ticket] = nil
  if entry and entry.ends_at > now then return entry end
end

return new
