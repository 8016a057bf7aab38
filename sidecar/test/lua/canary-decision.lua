local decision = require('canary.decision')

local REVISION = 0x19be04aa3c

local function request(more)
  local all = { header = {}, cookie = {}, query = {} }
  for what, values in pairs(more or {}) do all[what] = values end
  return {
    header = function(name) return all.header[name] end,
    cookie = function(name) return all.cookie[name] end,
    query = function(name) return all.query[name] end,
    hash = function(text) return tonumber(text) end,
  }
end

local function canary(share, more)
  local rules = { matches = {} }
  for name, value in pairs(more or {}) do rules[name] = value end
  return { revision = REVISION, share = share, rules = rules, has_cookie = true }
end

local function with_place(place) return request({ cookie = { ['corelane-bucket'] = tostring(place) } }) end
local function never() error('nobody is to get a place') end
local function first_of() return 1 end

test('each share of all places is on the canary side, to one', function()
  for _, share in ipairs({ 1, 500, 2500, 9999, 10000 }) do
    local count = 0
    for place = 0, 9999 do
      if decision.of(with_place(place), canary(share), never, first_of) == 'canary' then count = count + 1 end
    end
    equal(count, share)
  end
end)

test('who is there stays when the share grows', function()
  for place = 0, 9999, 7 do
    local was = false
    for _, share in ipairs({ 100, 500, 2500, 5000, 10000 }) do
      local is = decision.of(with_place(place), canary(share), never, first_of) == 'canary'
      if was and not is then error('place ' .. place .. ' went back at ' .. share) end
      was = is
    end
  end
end)

test('places of nobody are spread evenly, wherever they begin', function()
  for first = 0, 9999, 1111 do
    local next_place, count, worst = decision.places(first, math.random), 0, 0
    for index = 1, 10000 do
      if decision.of(request(), canary(2500), next_place, first_of) == 'canary' then count = count + 1 end
      worst = math.max(worst, math.abs(count - index / 4))
    end
    -- Those that are drawn late, of 64, are missing: 16 of the canary's, give or take.
    if worst > 25 then error('off by ' .. worst) end
  end
end)

test('who gets one place knows neither the next one nor its side', function()
  local next_place, seen, followed = decision.places(0, math.random), {}, 0
  for _ = 1, 10000 do
    local place = next_place()
    if seen[(place - 6181) % 10000] then followed = followed + 1 end
    seen = { [place] = true }
  end
  if followed > 500 then error(followed .. ' places were the next one of the sequence') end
end)

test('others come first in the next canary', function()
  local both = 0
  for place = 0, 9999 do
    local one = decision.of(with_place(place), canary(500), never, first_of)
    local other = canary(500)
    other.revision = 0xaabbccddee
    if one == 'canary' and decision.of(with_place(place), other, never, first_of) == 'canary' then both = both + 1 end
  end
  if both > 400 then error(both .. ' again') end
end)

test('a share of nothing: nobody, whatever he sends, and nobody is counted', function()
  local rules = { matches = { { what = 'header', name = 'A', value = '1' } } }
  local side, is_assigned, place = decision.of(request({ header = { A = '1' } }), canary(0, rules), never, first_of)
  equal(side, 'stable')
  equal(is_assigned, false)
  equal(place, nil)
end)

test('a rule before a key before a cookie before a new place', function()
  local rules = { matches = { { what = 'header', name = 'A', value = '1' } }, key = { what = 'cookie', name = 'user' } }
  local all = { header = { A = '1' }, cookie = { user = '9999', ['corelane-bucket'] = '1' } }
  local side, is_assigned = decision.of(request(all), canary(5000, rules), never, first_of)
  equal(side, 'canary')
  equal(is_assigned, false)
  all.header.A = '2'
  side, is_assigned = decision.of(request(all), canary(5000, rules), never, first_of)
  equal(side, 'stable')
  equal(is_assigned, true)
  -- An empty name is none.
  all.cookie.user = ''
  local place = select(3, decision.of(request(all), canary(5000, rules), never, first_of))
  equal(place, nil)
  all.cookie['corelane-bucket'] = nil
  place = select(3, decision.of(request(all), canary(5000, rules), function() return 7 end, first_of))
  equal(decision.place_of(tostring(place)), place)
end)

test('who gets a place is on its side from then on, and its place is any of that side', function()
  for _, share in ipairs({ 1, 500, 5000, 9999, 10000 }) do
    local sides, places = {}, {}
    for index = 0, 9999, 3 do
      local one = canary(share)
      local side, _, place = decision.of(request(), one, function() return index end, math.random)
      equal(decision.of(with_place(place), one, never, first_of), side)
      sides[side] = (sides[side] or 0) + 1
      places[place] = true
    end
    local different = 0
    for _ in pairs(places) do different = different + 1 end
    if share == 5000 and different < 2000 then error('only ' .. different .. ' places') end
    if share == 5000 then equal(math.abs(sides.canary - sides.stable) < 5, true) end
  end
end)

test('without cookies of ours nobody has a place, and nobody gets one', function()
  local off = canary(2500)
  off.has_cookie = false
  local side, is_assigned, place = decision.of(with_place(1), off, function() return 9999 end, first_of)
  equal(side, decision.of(with_place(9999), canary(2500), never, first_of))
  equal(is_assigned, true)
  equal(place, nil)
end)

test('who has a name or a place is there by that, others by chance', function()
  local function named(one, canary_now)
    local by = select(4, decision.of(one, canary_now, function() return 7 end, first_of))
    return by and (by.is_key and 'key ' or 'place ') .. by.name
  end
  local off, keyed = canary(2500), canary(2500, { key = { what = 'cookie', name = 'user' } })
  off.has_cookie = false
  equal(named(with_place(1), canary(2500)), 'place 1')
  equal(named(request(), canary(2500)), nil)
  equal(named(with_place(1), off), nil)
  equal(named(request({ cookie = { user = '12' } }), keyed), 'key 12')
  -- An empty name is none: it must not make one of all who have it.
  equal(named(request({ cookie = { user = '', ['corelane-bucket'] = '34' } }), keyed), 'place 34')
  equal(named(request({ cookie = { user = '' } }), keyed), nil)
end)

test('as many places of either side are compared, whatever the share', function()
  for _, share in ipairs({ 1, 500, 5000, 7500, 10000 }) do
    local compared = { canary = 0, stable = 0 }
    for place = 0, 9999 do
      local side, _, _, by = decision.of(with_place(place), canary(share), never, first_of)
      if by.is_compared then compared[side] = compared[side] + 1 end
    end
    equal(compared.canary, math.min(share, 10000 - share))
    equal(compared.stable, compared.canary)
  end
end)

test('what is no place is none', function()
  equal(decision.place_of('0'), 0)
  equal(decision.place_of('0042'), 42)
  equal(decision.place_of('9999'), 9999)
  for _, text in ipairs({ '', '-1', '10000', '1x', ' 1', '1 ', '1.0', '0x1', '1\0', '\xd9\xa1' }) do equal(decision.place_of(text), nil) end
  equal(decision.place_of(nil), nil)
end)
