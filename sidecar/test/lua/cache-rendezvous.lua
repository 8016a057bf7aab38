-- cache/rendezvous.lua
local rendezvous = require('cache.rendezvous')

local function pods(...)
  local list = {}
  for _, address in ipairs({ ... }) do list[#list + 1] = { address = address, name = rendezvous.hash(address) } end
  return list
end

local function home(url, list)
  local owner = rendezvous.owner(rendezvous.hash(url), list, 'name')
  return owner and owner.address
end

local FIVE = { '10.244.0.5', '10.244.0.6', '10.244.1.5', '10.244.1.16', '10.244.2.7' }

test('of nobody it is nobody\'s, of one it is his', function()
  equal(home('shop.example/', {}), nil)
  equal(home('shop.example/', pods('10.0.0.1')), '10.0.0.1')
end)

test('FNV-1a', function()
  equal(('%x'):format(rendezvous.hash('')), 'cbf29ce484222325')
  equal(('%x'):format(rendezvous.hash('foobar')), '85944171f73967e8')
end)

test('all agree, in whatever order they know each other', function()
  local back = {}
  for index = #FIVE, 1, -1 do back[#back + 1] = FIVE[index] end
  for n = 1, 200 do equal(home('shop.example/p/' .. n, pods(table.unpack(FIVE))), home('shop.example/p/' .. n, pods(table.unpack(back)))) end
end)

test('when one goes nothing moves but what was its own', function()
  local rest = { table.unpack(FIVE, 1, 4) }
  for n = 1, 200 do
    local before = home('shop.example/p/' .. n, pods(table.unpack(FIVE)))
    if before ~= FIVE[5] then equal(home('shop.example/p/' .. n, pods(table.unpack(rest))), before) end
  end
end)

test('each has its share', function()
  local counts, list = {}, pods(table.unpack(FIVE))
  for n = 1, 1000 do
    local owner = home('shop.example/p/' .. n, list)
    counts[owner] = (counts[owner] or 0) + 1
  end
  for _, address in ipairs(FIVE) do
    equal(counts[address] > 150, true)
    equal(counts[address] < 250, true)
  end
end)
