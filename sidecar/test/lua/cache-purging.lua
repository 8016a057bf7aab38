-- cache/purging.lua, with nginx and peers that note what they are told
local now = 0
package.loaded['clock'] = function() return now end
local works
package.loaded['pooling.forever'] = function(work) works[#works + 1] = work end
local pops = 0
core.queue = function()
  local size = 0
  return {
    push = function() size = size + 1 end,
    size = function() return size end,
    pop_wait = function()
      pops, size = pops + 1, 0
    end,
  }
end
core.msleep = function() end
core.register_task = function(task) task() end
local told
core.httpclient = function()
  return {
    post = function(_, request)
      told[#told + 1] = request.headers['X-Corelane-Purge'][1] .. ' at ' .. request.headers['X-Corelane-Changed'][1]
      return { status = 200 }
    end,
  }
end

-- A pod with these peers, by address: those that are `away` do not answer.
local function pod(addresses, is_crowded)
  package.loaded['cache.purging'] = nil
  works, told, now = {}, {}, 0
  local list, heard, away = {}, {}, {}
  for _, address in ipairs(addresses) do
    list[#list + 1], heard[address] = { address = address }, {}
  end
  local purging = require('cache.purging')
  purging.start(9100)
  purging.start_peers({
    own_addresses = {},
    known = function() return list end,
    is_crowded = function() return is_crowded end,
    tell_change = function(peer, change)
      if away[peer.address] then return false end
      local items = heard[peer.address]
      items[#items + 1] = change.items .. ' at ' .. change.ms
      return true
    end,
  })
  local all = { purging = purging, heard = heard, away = away }
  all.own, all.late, all.peers = table.unpack(works)
  return all
end

local function text(lines)
  local said = table.concat(lines, '; ')
  for index in pairs(lines) do lines[index] = nil end
  return said
end

test('a change goes to nginx at once, and to others with those of the same moment', function()
  local one = pod({ 'a', 'b' })
  equal(one.purging.purge({ '/1' }, 100), 1)
  one.own()
  equal(text(told), '/1 at 100')
  equal(one.purging.wait_for(1), true)
  one.purging.purge({ '/2', 'tag:x' }, 100)
  one.purging.purge({ '/1' }, 90)
  one.own()
  equal(text(told), '/2,tag:x,/1 at 102')
  one.peers()
  equal(text(one.heard.a), '/1,/2,tag:x at 102')
  equal(text(one.heard.b), '/1,/2,tag:x at 102')
  one.peers()
  equal(text(one.heard.a), '')
end)

test('a page is purged five times at once, and then once a second, and the last change is not lost', function()
  local one = pod({ 'a' })
  local at_once = 0
  for n = 1, 100 do
    if one.purging.purge({ '/1' }, 100 + n) then at_once = at_once + 1 end
    one.own()
  end
  equal(at_once, 5)
  equal(#told, 5)
  -- Another page has its own.
  equal(one.purging.purge({ '/2', '/1' }, 300) ~= nil, true)
  one.own()
  told = {}
  one.late()
  one.own()
  equal(text(told), '')
  now = 1000
  one.late()
  one.own()
  equal(text(told), '/1 at 300')
  one.late()
  one.own()
  equal(text(told), '')
end)

test('what another pod says is purged once, and told on only where not all are known', function()
  for _, is_crowded in ipairs({ false, true }) do
    local others = {}
    for n = 1, 20 do others[n] = 'p' .. n end
    local one = pod(others, is_crowded)
    for _ = 1, 3 do one.purging.hear_once('ab-1', '7', '/1, *') end
    one.own()
    equal(text(told), '/1,* at 7')
    one.peers()
    local count = 0
    for _, items in pairs(one.heard) do
      count = count + #items
      if #items > 0 then equal(items[1], '/1, * at 7') end
    end
    equal(count, is_crowded and 8 or 0)
  end
end)

test('what is none changes nothing', function()
  local one = pod({ 'a' }, true)
  for _, id in ipairs({ '', 'x-1', 'ab', ('a'):rep(64) .. '-1' }) do one.purging.hear_once(id, '7', '/1') end
  one.purging.hear_once(nil, nil, nil)
  one.purging.hear_once('ab-1', '7', '/1, nonsense')
  one.purging.hear('7', 'nonsense')
  one.own()
  equal(text(told), '')
  one.purging.hear_once('ab-2', ('9'):rep(16), '/1')
  one.own()
  equal(text(told), '/1 at 0')
end)

test('a pod that did not answer is told what it has missed; one that has missed too much, to purge all', function()
  local one = pod({ 'a' })
  one.peers()
  one.away.a = true
  one.purging.purge({ '/1' }, 1)
  one.peers()
  one.purging.purge({ '/2' }, 2)
  one.peers()
  equal(text(one.heard.a), '')
  one.away.a = nil
  one.peers()
  equal(text(one.heard.a), '/1 at 1; /2 at 2')
  one.away.a = true
  for n = 1, 1100 do
    one.purging.purge({ '/many/' .. n }, n + 2)
    one.peers()
  end
  one.away.a = nil
  one.peers()
  equal(one.heard.a[1], '* at 0')
  equal(one.heard.a[2], '/many/77 at 79')
  equal(#one.heard.a, 1025)
end)

test('a pod that was not known hears of what was changed a moment ago, and of no more', function()
  local one = pod({ 'a' })
  one.peers()
  one.purging.purge({ '/old' }, 1)
  one.peers()
  now = 9000
  one.purging.purge({ '/new' }, 2)
  one.peers()
  now = 12000
  local late = pod({})
  late.purging.purge({ '/x' }, 1)
  equal(text(one.heard.a), '/old at 1; /new at 2')
end)

test('while nginx does not answer no list grows without end', function()
  local one = pod({})
  for n = 1, 5000 do one.purging.purge({ '/page/' .. n }, n) end
  one.own()
  equal(text(told), '* at 5000')
end)
