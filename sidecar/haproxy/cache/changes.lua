-- Lists of changes that other pods have to hear of, in their order: so many at most. Computes only.
local changes = {}
changes.__index = changes

local LISTS_MAX = 1024
local BYTES_MAX = 1024 * 1024

local function new() return setmetatable({ by_number = {}, first = 1, last = 0, bytes = 0 }, changes) end

-- Adds a list.
function changes:add(text)
  self.last = self.last + 1
  self.by_number[self.last], self.bytes = text, self.bytes + #text
  while self.last - self.first >= LISTS_MAX or self.bytes > BYTES_MAX do
    self.bytes = self.bytes - #self.by_number[self.first]
    self.by_number[self.first] = nil
    self.first = self.first + 1
  end
end

-- The next list after a number, and its own number; nil if there is none. If lists in between are there no more: "*",
-- for all pages, and the number of the last of them.
function changes:next(number)
  if number + 1 < self.first then return '*', self.first - 1 end
  return self.by_number[number + 1], number + 1
end

return new
