-- A log of the lists of purges that this pod sends to its peers. Each list has a number, so the pod can resume where a
-- peer stopped. The log drops the oldest lists when it is full. Computes only.
local log = {}
log.__index = log

local LISTS_MAX = 1024
local BYTES_MAX = 1024 * 1024
-- A question to a peer has room for one header of this size.
local QUESTION_BYTES_MAX = 8000

local function new() return setmetatable({ by_number = {}, first = 1, last = 0, bytes = 0 }, log) end

function log:append(text)
  local number = self.last + 1
  self.by_number[number], self.bytes = text, self.bytes + #text
  self.last = number
  while self.last - self.first >= LISTS_MAX or self.bytes > BYTES_MAX do
    self.bytes = self.bytes - #self.by_number[self.first]
    self.by_number[self.first] = nil
    self.first = self.first + 1
  end
end

-- Returns the lists after a number, joined as far as they fit into one question, and the number of the last of them;
-- nil if there are none. If the log has dropped the next list it returns "*" (purge all pages), and the number of the
-- last list that it has dropped.
function log:after(number)
  if number + 1 < self.first then return '*', self.first - 1 end
  local lists, bytes = {}, 0
  for candidate = number + 1, self.last do
    local text = self.by_number[candidate]
    bytes = bytes + #text + 1
    if #lists > 0 and bytes > QUESTION_BYTES_MAX then break end
    lists[#lists + 1] = text
  end
  if #lists > 0 then return table.concat(lists, ','), number + #lists end
end

return new
