-- On which side of a canary a request is. Computes only.
--
-- Each person has a place among 10,000, and those below the share are on the canary's side. The share only grows while
-- there is this canary, so nobody goes back; places are turned by another angle for the next one, so that other people
-- come first.
local decision = {}

local PLACES = 10000
-- 10,000 times the golden ratio, and coprime with it: whoever has no place yet gets the next one, and those of any part
-- of the sequence are spread evenly. Random ones would miss a share of 50 % by a point once in 22 times 10,000
-- requests.
local STEP = 6181
local SEED_MAX = 2147483648
-- Whoever asks again and again must not know the side of what he sends next: it is drawn from so many places that come
-- next, and the one that he gets is any of that side.
local DRAWN_FROM = 64

-- Places for those who have none, from about `first` on. `random(n)`: one of 1 to n.
function decision.places(first, random)
  local last = first % PLACES
  local function following()
    last = (last + STEP) % PLACES
    return last
  end
  local coming = {}
  for index = 1, DRAWN_FROM do coming[index] = following() end
  return function()
    local index = random(DRAWN_FROM)
    local place = coming[index]
    coming[index] = following()
    return place
  end
end

-- A client chooses what he sends; with a place of his own choice he gets the page of either side.
function decision.place_of(cookie)
  local digits = cookie and cookie:match('^%d%d?%d?%d?$')
  return digits and math.tointeger(tonumber(digits))
end

local function value_of(request, rule)
  local value = request[rule.what](rule.name)
  return value ~= '' and value or nil
end

local function matches(request, rules)
  for _, rule in ipairs(rules.matches) do
    if value_of(request, rule) == rule.value then return true end
  end
  return false
end

-- `turned`: a place by the angle of the canary.
local function side_at(turned, share) return turned < share and 'canary' or 'stable' end

-- Any place of a side.
local function place_on(side, canary, random)
  local turned = side == 'canary' and random(canary.share) - 1 or canary.share + random(PLACES - canary.share) - 1
  return (turned - canary.revision) % PLACES
end

-- Who is compared with whom: as many places of either side, whatever the share.
local function is_compared(turned, share)
  local places = math.min(share, PLACES - share)
  return turned < places or turned >= PLACES - places
end

-- The side; whether it is there by its place or name, and counts for a comparison of both; a place if it has got one
-- just now; and by what of its client it is there: { name = a place or the value of `key`, is_key, is_compared }, the
-- last of which says whether he is one of as many on either side; nil if it is there by chance. `canary`: { revision,
-- share, rules, has_cookie }; `request`: functions by what a rule asks for, and `hash(text, seed)`; `random(n)`: one of
-- 1 to n.
function decision.of(request, canary, next_place, random)
  local share = canary.share
  if share == 0 then return 'stable', false end
  if matches(request, canary.rules) then return 'canary', false end
  local function by_name(turned, name, is_key)
    local by = { name = name, is_key = is_key, is_compared = is_compared(turned, share) }
    return side_at(turned, share), true, nil, by
  end
  local key = canary.rules.key and value_of(request, canary.rules.key)
  if key then return by_name(request.hash(key, canary.revision % SEED_MAX) % PLACES, key, true) end
  local known = canary.has_cookie and decision.place_of(request.cookie('corelane-bucket'))
  if known then return by_name((known + canary.revision) % PLACES, tostring(known), false) end
  local side = side_at((next_place() + canary.revision) % PLACES, share)
  return side, true, canary.has_cookie and place_on(side, canary, random) or nil, nil
end

return decision
