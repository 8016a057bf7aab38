-- Collects items to purge. Each item stands in the batch once, with the entry that is sent for it. Computes only.
local list = require('cache.purge-list')

local batch = {}
batch.__index = batch

local function new() return setmetatable({ items = {}, entries = {}, bytes = 0 }, batch) end

-- Adds an item. A later entry replaces the entry of the same item.
function batch:add(item, entry)
  if not self.entries[item] then
    self.items[#self.items + 1], self.bytes = item, self.bytes + #entry
  end
  self.entries[item] = entry
end

function batch:is_empty() return #self.items == 0 end

-- The entries as header values, each short enough for one header.
function batch:lists()
  local entries = {}
  for index, item in ipairs(self.items) do entries[index] = self.entries[item] end
  return list.write(entries)
end

return new
