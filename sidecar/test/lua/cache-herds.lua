-- cache/herds.lua
local new = require('cache.herds')

local idle
local function herds(places, tries)
  idle = {}
  return new({ places = places or 2, tries = tries or 2, ['pass-ms'] = 1000 }, function(place) return idle[place] ~= false end)
end

local function join(all, key, token, now, round, is_again) return all:join(key, token, is_again or false, round or 0, now) end

-- One that has come out of the queue and goes on.
local function filler(all, key, token, now)
  local herd = join(all, key, token, now)
  idle[herd.place] = false
  local same, goes_on = all:turn(herd.id, token, now)
  equal(same, herd)
  equal(goes_on, true)
  return herd
end

test('who asks for the same page stands with the others', function()
  local all = herds()
  local herd = filler(all, 'a', 't1', 0)
  equal(join(all, 'a', 't2', 10), herd)
  equal(join(all, 'b', 't3', 10) ~= herd, true)
end)

test('who waited gets the page, and nobody goes on', function()
  local all = herds()
  local herd = filler(all, 'a', 't1', 0)
  join(all, 'a', 't2', 1)
  all:answered(herd, 't1')
  all:filled(herd, 10)
  local same, goes_on = all:turn(herd.id, 't2', 100000)
  equal(same.outcome, 'filled')
  equal(goes_on, false)
end)

test('while the page is written who comes joins', function()
  local all = herds()
  local herd = filler(all, 'a', 't1', 0)
  all:filled(herd, 10)
  equal(join(all, 'a', 't2', 20000), herd)
end)

test('who has asked just before it was there finds it', function()
  local all = herds()
  local herd = filler(all, 'a', 't1', 0)
  all:filled(herd, 10)
  idle[herd.place] = true
  equal(join(all, 'a', 't2', 20), herd)
  equal(join(all, 'a', 't3', 1500) ~= herd, true)
end)

test('for whom it was no page a new herd begins', function()
  local all = herds()
  local herd = filler(all, 'a', 't1', 0)
  all:filled(herd, 10)
  equal(join(all, 'a', 't2', 20, 1) ~= herd, true)
end)

test('a page that is never found is for nobody else', function()
  local all = herds()
  local herd, known = join(all, 'a', 't', 0, 3)
  equal(herd, nil)
  equal(known, 'pass')
  herd, known = join(all, 'a', 't2', 999)
  equal(known, 'pass')
  herd, known = join(all, 'a', 't3', 1000)
  equal(known, nil)
  equal(type(herd), 'table')
end)

test('all who stood in a herd whose renders failed are told so, however late', function()
  local all = herds()
  local herd = filler(all, 'a', 't1', 0)
  for n = 2, 20 do join(all, 'a', 't' .. n, 1) end
  all:answered(herd, 't1')
  all:failed(herd, 503, 'render-failed', false, 10)
  local _, goes_on = all:turn(herd.id, 't2', 20)
  equal(goes_on, true)
  all:answered(herd, 't2')
  all:failed(herd, 503, 'render-failed', false, 30)
  for n = 3, 20 do
    local same, on = all:turn(herd.id, 't' .. n, n * 10000)
    equal(same.outcome, 'failed')
    equal(same.reason, 'render-failed')
    equal(on, false)
  end
end)

test('who comes after the failure is in another herd', function()
  local all = herds(2, 1)
  local herd = filler(all, 'a', 't1', 0)
  all:failed(herd, 503, 'render-failed', false, 10)
  equal(join(all, 'a', 't2', 10) ~= herd, true)
end)

test('whose worker has died comes back to its herd, and is counted once', function()
  local all = herds(2, 3)
  local herd = filler(all, 'a', 't1', 0)
  join(all, 'a', 't2', 1)
  all:unanswered(herd, 't1', 10)
  equal(herd.failures, 1)
  equal(join(all, 'a', 't1', 11, 0, true), herd)
  equal(herd.failures, 1)
  equal(herd.died, true)
end)

test('a death that nobody has told is counted when it comes back', function()
  local all = herds(2, 3)
  local herd = filler(all, 'a', 't1', 0)
  equal(join(all, 'a', 't1', 11, 0, true), herd)
  equal(herd.failures, 1)
end)

test('whose herd has failed meanwhile is told so', function()
  local all = herds(2, 1)
  local herd = filler(all, 'a', 't1', 0)
  all:unanswered(herd, 't1', 10)
  equal(join(all, 'a', 't1', 11, 0, true), herd)
  equal(herd.outcome, 'failed')
end)

test('who is not for others is remembered for some time', function()
  local all = herds()
  local herd = filler(all, 'a', 't1', 0)
  all:pass(herd, 10)
  local same, goes_on = all:turn(herd.id, 't2', 50)
  equal(same.outcome, 'pass')
  equal(goes_on, false)
  local _, known = join(all, 'a', 't3', 1009)
  equal(known, 'pass')
  equal(type(join(all, 'a', 't4', 1010)), 'table')
end)

test('with more herds than places nobody waits', function()
  local all = herds(2)
  filler(all, 'a', 't1', 0)
  filler(all, 'b', 't2', 0)
  local herd, known = join(all, 'c', 't3', 1)
  equal(herd, nil)
  equal(known, nil)
  local same, goes_on = all:turn(nil, 't3', 2)
  equal(same, nil)
  equal(goes_on, true)
end)

test('the place of one that has gone without a word is free again', function()
  local all = herds(1)
  local herd = filler(all, 'a', 't1', 0)
  idle[herd.place] = true
  equal(join(all, 'b', 't2', 500), nil)
  equal(type(join(all, 'b', 't2', 1500)), 'table')
end)

test('one that is late finds its herd, whoever has its place', function()
  local all = herds(1, 1)
  local herd = filler(all, 'a', 't1', 0)
  join(all, 'a', 't2', 1)
  all:failed(herd, 503, 'x', false, 10)
  idle[herd.place] = true
  equal(join(all, 'b', 't3', 20).place, herd.place)
  local same = all:turn(herd.id, 't2', 5000)
  equal(same.outcome, 'failed')
  all:sweep(100000)
  equal(all:turn(herd.id, 't2', 100000), nil)
end)
