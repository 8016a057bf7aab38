-- What is known of requests whose first try has got no answer: whether it is certain that it was not begun. Computes
-- only.
local verdicts = {}
verdicts.__index = verdicts

-- The latest `places` are remembered.
local function new(places)
  return setmetatable({ places = places, by_token = {}, tokens = {}, place = 0 }, verdicts)
end

function verdicts:note(token, is_unbegun)
  self.place = self.place % self.places + 1
  local old = self.tokens[self.place]
  if old then self.by_token[old] = nil end
  self.tokens[self.place] = token
  self.by_token[token] = is_unbegun
end

-- True, false, or nil for a request of which nothing is known.
function verdicts:of(token)
  return self.by_token[token]
end

return new
