-- Places of requests that are held. Nobody is told that a client has gone: its requests keep their places until the
-- hold is over. So whoever has most of them makes room. Computes only.
local places = {}
places.__index = places

-- `count_max` gives how many there may be.
local function new(count_max)
  return setmetatable({
    count_max = count_max,
    count = 0, -- taken
    held = {}, -- by request: { own, seen_ms }
    clients = {}, -- { client, count, out }: its places, and how many of its requests have lost theirs and do not know it yet
  }, places)
end

function places:add(own, by)
  own.count, self.count = own.count + by, self.count + by
  self.clients[own.client] = own.count + own.out > 0 and own or nil
end

function places:who_has_most()
  local found
  for _, own in pairs(self.clients) do
    if not found or own.count > found.count then found = own end
  end
  return found
end

-- Takes a place for a request, that of somebody else if need be; false if there is none.
function places:take(request, client, now)
  local own = self.clients[client] or { client = client, count = 0, out = 0 }
  if self.count >= self.count_max() then
    local other = self:who_has_most()
    if not other or other.count <= own.count + 1 then return false end
    other.out = other.out + 1
    self:add(other, -1)
  end
  self:add(own, 1)
  self.held[request] = { own = own, seen_ms = now }
  return true
end

-- The request is there. Whether it has lost its place.
function places:is_out(request, now)
  local place = self.held[request]
  if not place then return false end
  place.seen_ms = now
  return place.own.out > 0
end

function places:give_back(request)
  local place = self.held[request]
  if not place then return end
  local own = place.own
  self.held[request] = nil
  if own.out == 0 then return self:add(own, -1) end
  own.out = own.out - 1
  self:add(own, 0)
end

-- Gives back the places of requests that have not been seen for so long: a stream that ends takes its coroutine along.
function places:sweep(now, unseen_ms)
  for request, place in pairs(self.held) do
    if now - place.seen_ms >= unseen_ms then self:give_back(request) end
  end
end

return new
