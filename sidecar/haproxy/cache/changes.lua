-- Changes that purge cached pages, in the order in which this pod has heard of them. Computes only.
local changes = {}
changes.__index = changes

-- A pod that does not answer is told for so long: its pages of before have ended by then, unless a rule of cache.ttl
-- says more.
local KEEP_MS = 600000
local CHANGES_MAX = 1024
local BYTES_MAX = 1024 * 1024

local function new() return setmetatable({ by_number = {}, first = 1, last = 0, bytes = 0, lost = 0 }, changes) end

local function drop_first(self)
  self.bytes = self.bytes - #self.by_number[self.first].items
  self.by_number[self.first] = nil
  self.first = self.first + 1
end

-- Adds a change { items, ... }: its number.
function changes:add(change, now)
  self.last = self.last + 1
  change.at = now
  self.by_number[self.last], self.bytes = change, self.bytes + #change.items
  while self.by_number[self.first].at + KEEP_MS <= now do drop_first(self) end
  while self.last - self.first >= CHANGES_MAX or self.bytes > BYTES_MAX do
    self.lost = self.first
    drop_first(self)
  end
  return self.last
end

-- The next change after a number, and its own number; nil if there is none. The third value is whether some in between
-- are lost, because there were too many.
function changes:next(number, now)
  for candidate = math.max(number + 1, self.first), self.last do
    if self.by_number[candidate].at + KEEP_MS > now then return self.by_number[candidate], candidate, number < self.lost end
  end
  return nil, nil, number < self.lost
end

-- The number of the last change that is older than so much.
function changes:before(ms, now)
  for candidate = self.first, self.last do
    if self.by_number[candidate].at + ms > now then return candidate - 1 end
  end
  return self.last
end

return new
