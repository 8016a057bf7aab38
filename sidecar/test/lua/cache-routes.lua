-- cache/routes.lua
local routes = require('cache.routes')

local function new() return routes.new({ ['pass-ms'] = 1000 }) end

test('the last segment and ids make no other route', function()
  for _, pair in ipairs({
    { '/', '/' }, { '/a', '/b' }, { '/products/1', '/products/red-shoes' }, { '/products/1?x=/y/z', '/products/2' },
    { '/u/17/posts/1', '/u/18/posts/2' }, { '/a/', '/b' },
    { '/o/123e4567-e89b-12d3-a456-426614174000/x', '/o/00000000-e89b-12d3-a456-426614174000/y' },
  }) do equal(routes.of('h', pair[1]), routes.of('h', pair[2])) end
  for _, pair in ipairs({ { '/', '/a' }, { '/a/1', '/b/1' }, { '/a/1', '/a/1/2' } }) do
    equal(routes.of('h', pair[1]) ~= routes.of('h', pair[2]), true)
  end
  equal(routes.of('h', '/a') ~= routes.of('i', '/a'), true)
end)

test('a path without end is a route like others', function()
  local route = routes.of('h', ('/a'):rep(10000))
  equal(#route < 300, true)
  equal(routes.of('h', '/' .. ('x'):rep(10000)), routes.of('h', '/y'))
end)

-- Looks of a route, one after the other, and what becomes of each page.
local function looks(all, path, outcome, now)
  local route, section = routes.of('h', path)
  if not all:may_look(path, route, section, now) then return false end
  if outcome == 'kept' then all:kept(route, section) else all:passed(route, section, outcome == 'error', now) end
  return true
end

test('three looks in vain, then one in a while', function()
  local all = new()
  for n = 1, 3 do equal(looks(all, '/a/' .. n, 'passed', n), true) end
  equal(looks(all, '/a/4', 'passed', 4), false)
  equal(looks(all, '/a/5', 'passed', 1002), false)
  equal(looks(all, '/a/6', 'passed', 1003), true)
  equal(looks(all, '/a/7', 'passed', 1004), false)
end)

test('a route of the same section that nobody has seen has no more credit', function()
  local all = new()
  for n = 1, 3 do looks(all, '/u/p' .. n .. '/posts', 'passed', 0) end
  equal(looks(all, '/u/p4/posts', 'passed', 1), false)
  equal(looks(all, '/other/x', 'passed', 1), true)
end)

test('whoever has begun before the first has ended is not held back, and what he begins when all is spent is', function()
  local all = new()
  local route, section = routes.of('h', '/a/1')
  for n = 1, 20 do equal(all:may_look('k' .. n, route, section, 0), true) end
  for _ = 1, 20 do all:passed(route, section, false, 1) end
  equal(all:may_look('a', route, section, 1001), true)
  -- The one of a moment ago is still on its way.
  equal(all:may_look('b', route, section, 1002), false)
end)

test('pages that are kept give credit, but no more than for ten', function()
  local all = new()
  for n = 1, 50 do looks(all, '/a/k' .. n, 'kept', 0) end
  for n = 1, 10 do equal(looks(all, '/a/p' .. n, 'passed', 0), true) end
  equal(looks(all, '/a/x', 'passed', 0), false)
  looks(all, '/a/x', 'kept', 1000)
  equal(looks(all, '/a/y', 'passed', 1001), true)
end)

test('errors say nothing of their route', function()
  local all = new()
  for n = 1, 20 do equal(looks(all, '/a/' .. n, 'error', 0), true) end
  equal(looks(all, '/a/b', 'kept', 0), true)
end)

test('but all looks in vain together are no more than one a second for long', function()
  local all, count = new(), 0
  for n = 1, 1000 do if looks(all, '/r' .. n .. '/x', 'error', n * 10) then count = count + 1 end end
  equal(count >= 209 and count <= 211, true)
end)

test('what crowds waste is forgotten within minutes', function()
  local all = new()
  equal(all:may_waste(0), true)
  for _ = 1, 10000 do all:passed('r', 's', true, 0) end
  equal(all:may_waste(200000), false)
  equal(all:may_waste(201000), true)
end)

test('crowds do not put off the next look of a route', function()
  local all = new()
  for n = 1, 3 do looks(all, '/a/p' .. n, 'passed', 0) end
  for n = 1, 9 do all:passed('h/a/*', 'h/a 2', false, n * 100) end
  equal(looks(all, '/a/x', 'kept', 999), false)
  equal(looks(all, '/a/y', 'kept', 1000), true)
end)

test('a page that many want is looked at, whatever is known of its route', function()
  local all = new()
  for n = 1, 3 do looks(all, '/a/p' .. n, 'passed', 0) end
  equal(looks(all, '/a/sale', 'kept', 1), false)
  equal(looks(all, '/a/sale', 'kept', 2), false)
  equal(looks(all, '/a/sale', 'kept', 3), true)
end)

test('one that is wanted now and then is no crowd', function()
  local all = new()
  for n = 1, 3 do looks(all, '/a/p' .. n, 'passed', 0) end
  -- Before the next look of the route.
  for n = 1, 9 do equal(all:may_look('/a/slow', 'h/a/*', 'h/a 2', n * 100), n >= 3) end
  all = new()
  for n = 1, 3 do looks(all, '/a/p' .. n, 'passed', 0) end
  all.settings = { ['pass-ms'] = 1000000 }
  equal(all:may_look('/a/x', 'h/a/*', 'h/a 2', 1000), true)
  for n = 1, 9 do equal(all:may_look('/a/slow', 'h/a/*', 'h/a 2', 1000 + n * 2001), false) end
end)

test('headers that pages of a route depend on are remembered, and are not without end', function()
  local all = new()
  equal(all:learn('r', { 'a', 'b' }), true)
  equal(all:learn('r', { 'b', 'c' }), true)
  equal(table.concat(all:names('r'), ' '), 'a b c')
  equal(#all:names('other'), 0)
  equal(all:learn('r', { 'd', 'e', 'f', 'g', 'h' }), true)
  equal(all:learn('r', { 'i' }), false)
  equal(all:learn('s', { ('x'):rep(60), ('y'):rep(60) }), false)
  equal(all:learn('r', { 'a' }), true)
  equal(#all:names('r'), 8)
end)

test('routes without end do not stay', function()
  local all = new()
  for n = 1, 10000 do all:kept('r' .. n, 's') end
  equal(all.count <= 4096, true)
end)
