-- Lists of changes that other pods have to hear of, in their order: so many at most. Computes only.
local changes = {}
changes.__index = changes

local LISTS_MAX = 1024
local BYTES_MAX = 1024 * 1024
-- As long as one list may be.
local ANSWER_BYTES_MAX = 8000

local function new() return setmetatable({ by_number = {}, first = 1, last = 0, bytes = 0 }, changes) end

-- Adds a list.
function changes:add(text)
  local number = self.last + 1
  self.by_number[number], self.bytes = text, self.bytes + #text
  self.last = number
  while self.last - self.first >= LISTS_MAX or self.bytes > BYTES_MAX do
    self.bytes = self.bytes - #self.by_number[self.first]
    self.by_number[self.first] = nil
    self.first = self.first + 1
  end
end

-- What comes after a number: as many lists as fit into one, and the number of the last of them; nil if there is none.
-- If lists in between are there no more: "*", for all pages, and the number of the last of those.
function changes:next(number)
  if number + 1 < self.first then return '*', self.first - 1 end
  local lists, bytes = {}, 0
  for candidate = number + 1, self.last do
    local text = self.by_number[candidate]
    bytes = bytes + #text + 1
    if #lists > 0 and bytes > ANSWER_BYTES_MAX then break end
    lists[#lists + 1] = text
  end
  if #lists > 0 then return table.concat(lists, ','), number + #lists end
end

return new
