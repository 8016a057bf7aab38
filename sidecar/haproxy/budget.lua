-- Token buckets: one for each key, such as a client, and one that all keys share. Computes only.
local new_recent = require('recent')

local budget = {}
budget.__index = budget

-- So many keys have a bucket: the oldest key makes room for a new one. A key without a bucket starts with a full one.
local KEYS_MAX = 2048
local UNLIMITED = { burst = math.huge, per_second = function() return 0 end }

-- `each`: { burst, per_second } of a key. `all`: { burst, per_second() } of the shared bucket; unlimited unless given.
local function new(each, all, keys_max)
  all = all or UNLIMITED
  return setmetatable({
    each = each,
    all = all,
    of_all = { left = all.burst, at = -math.huge },
    buckets = new_recent(keys_max or KEYS_MAX, math.huge),
  }, budget)
end

-- The tokens in a bucket now.
local function left(bucket, burst, per_second, now)
  if bucket.at == -math.huge then return burst end
  return math.min(burst, bucket.left + (now - bucket.at) * per_second / 1000)
end

function budget:bucket_of(key, now)
  return self.buckets:get(key, now) or { left = self.each.burst, at = -math.huge }
end

-- Whether the bucket of a key, and that of all, have a token.
function budget:may(key, now)
  if left(self.of_all, self.all.burst, self.all.per_second(), now) < 1 then return false end
  return left(self:bucket_of(key, now), self.each.burst, self.each.per_second, now) >= 1
end

function budget:change(key, by, now)
  local bucket = self:bucket_of(key, now)
  bucket.left, bucket.at = left(bucket, self.each.burst, self.each.per_second, now) + by, now
  self.buckets:add(key, bucket, now)
  self.of_all.left, self.of_all.at = left(self.of_all, self.all.burst, self.all.per_second(), now) + by, now
end

-- Takes a token out of both buckets.
function budget:spend(key, now) self:change(key, -1, now) end

-- Puts it back.
function budget:refund(key, now) self:change(key, 1, now) end

return new
