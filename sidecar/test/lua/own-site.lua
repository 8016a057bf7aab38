local marks = require('own-site.marks')

local KEY, OTHER = string.rep('k', 32), string.rep('o', 32)

-- What a mark that a pod gave in this period leads to in a pod of another time, or with other keys.
local function leads_to(depth, period, keys, life_s)
  local given = marks.of({ KEY }, 1000, 2, life_s or 31)
  local _, known = marks.of(keys or { KEY }, period, 2, life_s or 31)
  return known[given[depth]]
end

test('a period is a minute', function()
  equal(marks.period(59), 0)
  equal(marks.period(60), 1)
end)

test('a mark leads to the places of its depth, in each pod with the key', function()
  equal(leads_to(1, 1000), 'own-site-1')
  equal(leads_to(2, 1000), 'own-site-2')
  equal(leads_to(1, 1000, { OTHER, KEY }), 'own-site-1')
  equal(leads_to(1, 1000, { OTHER }), nil)
  local given = marks.of({ KEY }, 1000, 2, 31)
  equal(given[1] == given[2], false)
  equal(given[3], nil)
end)

test('it counts for as long as a render may take, a minute early, and then no more', function()
  equal(leads_to(1, 998), nil)
  equal(leads_to(1, 999), 'own-site-1')
  equal(leads_to(1, 1001), 'own-site-1')
  equal(leads_to(1, 1002), nil)
  equal(leads_to(1, 1002, nil, 61), 'own-site-1')
  equal(leads_to(1, 1003, nil, 61), nil)
end)

test('the newest key makes the marks', function()
  local given = marks.of({ OTHER, KEY }, 1000, 2, 31)
  equal(given[1], (marks.of({ OTHER }, 1000, 2, 31))[1])
end)
