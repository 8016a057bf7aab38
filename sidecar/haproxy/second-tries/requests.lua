-- Which worker had a request last. Computes only.
local requests = {}
requests.__index = requests

-- Of each worker the latest `places` are remembered: more than it may have at a time, and some that it refused.
local function new(places)
  -- by_token: { worker, place, ms }; by_worker: the tokens by place, and `place`, that of the last one.
  return setmetatable({ places = places, by_token = {}, by_worker = {} }, requests)
end

-- The request with this token goes to this worker now.
function requests:note(token, worker, now)
  local own = self.by_worker[worker] or { place = 0 }
  self.by_worker[worker] = own
  local place = own.place % self.places + 1
  local old = own[place] and self.by_token[own[place]]
  if old and old.worker == worker and old.place == place then self.by_token[own[place]] = nil end
  own.place, own[place] = place, token
  self.by_token[token] = { worker = worker, place = place, ms = now }
end

-- No worker of this pod has it.
function requests:forget(token)
  self.by_token[token] = nil
end

-- { worker, ms } of the worker that had it last, and since when; nil if that is not known.
function requests:last(token)
  return self.by_token[token]
end

return new
