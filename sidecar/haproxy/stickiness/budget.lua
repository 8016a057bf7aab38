-- How often something may be in vain: for each client, and for all together. Computes only.
local new_recent = require('stickiness.recent')

local budget = {}
budget.__index = budget

-- Clients that are remembered, and for how long: who comes after that has all of his part again.
local CLIENTS_MAX = 2048
local CLIENT_MS = 60000

-- `each` and `all`: { burst, per_second }; the latter's rate is what `per_second()` says. `clients_max`: so many are
-- remembered.
local function new(each, all, clients_max)
  return setmetatable({
    each = each,
    all = all,
    of_all = { left = all.burst, at = -math.huge },
    clients = new_recent(clients_max or CLIENTS_MAX, CLIENT_MS),
  }, budget)
end

-- What is left of it now.
local function left(bucket, burst, per_second, now)
  if bucket.at == -math.huge then return burst end
  return math.min(burst, bucket.left + (now - bucket.at) * per_second / 1000)
end

function budget:of_client(client)
  return self.clients.entries[client] and self.clients.entries[client].value or { left = self.each.burst, at = -math.huge }
end

-- Whether a client may try.
function budget:may(client, now)
  if left(self.of_all, self.all.burst, self.all.per_second(), now) < 1 then return false end
  return left(self:of_client(client), self.each.burst, self.each.per_second, now) >= 1
end

function budget:change(client, by, now)
  local bucket = self:of_client(client)
  bucket.left, bucket.at = left(bucket, self.each.burst, self.each.per_second, now) + by, now
  self.clients:add(client, bucket, now)
  self.of_all.left, self.of_all.at = left(self.of_all, self.all.burst, self.all.per_second(), now) + by, now
end

-- It tries.
function budget:spend(client, now) self:change(client, -1, now) end

-- It was not in vain.
function budget:refund(client, now) self:change(client, 1, now) end

return new
