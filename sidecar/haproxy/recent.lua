-- What was said of something not long ago: so many things at most, for so long. Computes only.
local recent = {}
recent.__index = recent

-- `count_max`: the oldest goes for the next one; `keep_ms`: how long each is kept.
local function new(count_max, keep_ms)
  return setmetatable({ count_max = count_max, keep_ms = keep_ms, place = 0, keys = {}, entries = {} }, recent)
end

-- Remembers a value of a key from now on.
function recent:add(key, value, now)
  local entry = self.entries[key]
  if not entry then
    self.place = self.place % self.count_max + 1
    local oldest = self.keys[self.place]
    if oldest ~= nil then self.entries[oldest] = nil end
    entry = {}
    self.keys[self.place], self.entries[key] = key, entry
  end
  entry.value, entry.ends_at = value, now + self.keep_ms
end

-- The value; nil if there is none, or no longer.
function recent:get(key, now)
  local entry = self.entries[key]
  return entry and now < entry.ends_at and entry.value or nil
end

return new
