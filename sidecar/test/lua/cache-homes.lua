-- cache/homes.lua
local now, draining = 0, false
package.loaded['drain'] = { is_draining = function() return draining end }
package.loaded['clock'] = function() return now end
local is_deaf = false
package.loaded['cache.purge-peers'] = { catch_up = function() return not is_deaf end }

local OWN = '10.0.0.1'
local asked

-- This pod among others: what pooling.lua gives. `answers` by address.
local function fleet(others, answers, has_own_address)
  package.loaded['cache.homes'] = nil
  local homes = require('cache.homes')
  local by_address, list = {}, {}
  for _, address in ipairs(others) do
    by_address[address] = { address = address, known = { identity = 'of ' .. address } }
    list[#list + 1] = by_address[address]
  end
  if has_own_address ~= false then
    by_address[OWN] = { address = OWN }
    list[#list + 1] = by_address[OWN]
  end
  asked, now, draining = {}, 0, false
  homes.start({
    own_addresses = { [OWN] = true },
    known = function() return list end,
    at = function(address) return by_address[address] end,
    ask = function(peer, what)
      asked[#asked + 1] = peer.address
      equal(what, 'page')
      local answer = answers and answers[peer.address]
      return answer, answer == 'yes' and { 'ticket', 'proof' } or nil
    end,
  })
  return homes, by_address
end

-- A URL whose home this is, of those that are none of this pod's.
local function url_of(homes, wanted)
  for n = 1, 1000 do
    local url = 'shop.example/' .. n
    asked = {}
    if not homes.is_here(url) and (homes.find(url) or true) and asked[1] == wanted then
      asked = {}
      return url
    end
  end
  error('none')
end

test('alone a pod renders its own, and asks nobody', function()
  package.loaded['cache.homes'] = nil
  equal(require('cache.homes').is_here('a'), true)
  equal(require('cache.homes').find('a'), nil)
  local homes = fleet({})
  equal(homes.is_here('a'), true)
  equal(homes.find('a'), nil)
  equal(#asked, 0)
end)

test('it has its share of pages', function()
  local homes = fleet({ '10.0.0.2', '10.0.0.3' })
  local here = 0
  for n = 1, 900 do if homes.is_here('shop.example/' .. n) then here = here + 1 end end
  equal(here > 230 and here < 370, true)
end)

test('one whose address nobody knows yet is no home', function()
  local homes = fleet({ '10.0.0.2' }, {}, false)
  for n = 1, 50 do equal(homes.is_here('shop.example/' .. n), false) end
end)

test('one that drains is none, for its own clients either', function()
  local homes = fleet({ '10.0.0.2' }, {})
  draining, now = true, 1
  for n = 1, 50 do equal(homes.is_here('shop.example/' .. n), false) end
end)

test('a home that takes it', function()
  local homes = fleet({ '10.0.0.2', '10.0.0.3' }, { ['10.0.0.2'] = 'yes', ['10.0.0.3'] = 'yes' })
  local peer, hand_over = homes.find(url_of(homes, '10.0.0.3'))
  equal(peer.address, '10.0.0.3')
  equal(hand_over[1], 'ticket')
end)

test('of one that is full, or does not answer, the page is rendered here', function()
  for _, answer in ipairs({ 'full', 'room', 'nothing' }) do
    local homes = fleet({ '10.0.0.2', '10.0.0.3' }, { ['10.0.0.3'] = answer ~= 'nothing' and answer or nil })
    local url = url_of(homes, '10.0.0.3')
    equal(homes.find(url), nil)
    equal(#asked, 1)
  end
end)

test('one of another revision is not asked again', function()
  local homes = fleet({ '10.0.0.2', '10.0.0.3' }, { ['10.0.0.3'] = 'other', ['10.0.0.2'] = 'yes' })
  for n = 1, 200 do homes.find('shop.example/' .. n) end
  local count = 0
  for _, address in ipairs(asked) do if address == '10.0.0.3' then count = count + 1 end end
  equal(count, 1)
end)

test('another process at its address is', function()
  local homes, by_address = fleet({ '10.0.0.3' }, { ['10.0.0.3'] = 'other' })
  local url = url_of(homes, '10.0.0.3')
  equal(homes.is_here(url), true)
  by_address['10.0.0.3'].known = { identity = 'another' }
  now = 1
  equal(homes.is_here(url), false)
end)

test('one that drains is left alone for a while', function()
  local homes = fleet({ '10.0.0.3' }, { ['10.0.0.3'] = 'none' })
  local url = url_of(homes, '10.0.0.3')
  equal(homes.is_here(url), true)
  now = 999
  equal(homes.is_here(url), true)
  now = 1000
  equal(homes.is_here(url), false)
end)
