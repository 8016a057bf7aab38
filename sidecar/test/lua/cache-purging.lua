-- cache/purging.lua and cache/purge-peers.lua, with an nginx and peers that note what they get
local now = 0
package.loaded['clock'] = function() return now end
local holds
package.loaded['drain'] = { hold_while = function(condition) holds[#holds + 1] = condition end }
local function is_held()
  for _, condition in ipairs(holds) do
    if condition() then return true end
  end
  return false
end
local works
package.loaded['pooling.forever'] = function(work) works[#works + 1] = work end
core.queue = function()
  local size = 0
  return {
    push = function() size = size + 1 end,
    size = function() return size end,
    pop_wait = function() size = 0 end,
  }
end
-- Whoever waits waits for nginx.
core.msleep = function() works[1]() end
-- What happens while others run.
local meanwhile = function() end
core.yield = function() meanwhile() end
core.register_task = function(task) task() end
local told
core.httpclient = function()
  return {
    post = function(_, request)
      told[#told + 1] = request.headers['X-Corelane-Purge'][1]
      return { status = 200 }
    end,
  }
end

-- A pod with these peers, by address: those that are `away` do not answer.
local function pod(addresses, is_crowded)
  package.loaded['cache.purging'], package.loaded['cache.purge-peers'] = nil, nil
  works, holds, told, now = {}, {}, {}, 0
  local list, heard, away = {}, {}, {}
  local all = { heard = heard, away = away, list = list }
  function all.meet(address)
    list[#list + 1], heard[address] = { address = address }, heard[address] or {}
    return list[#list]
  end
  for _, address in ipairs(addresses) do all.meet(address) end
  all.purging = require('cache.purging')
  all.purging.start(9100)
  all.catch_up = require('cache.purge-peers').catch_up
  require('cache.purge-peers').start({
    own_addresses = {},
    known = function() return list end,
    is_crowded = function() return is_crowded end,
    close_unused = function() end,
    send_purges = function(peer, text)
      if away[peer.address] then return false end
      -- Without the name of this process.
      local items = heard[peer.address]
      items[#items + 1] = text:gsub('%x+%.(%d+:)', '%1')
      return true
    end,
  })
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
  local batch, words = one.purging.purge({ '/1' }, 100)
  equal(batch, 1)
  equal(words:match('^%x+%.100:/1$') ~= nil, true)
  one.own()
  equal(text(told), '100:/1')
  equal(one.purging.wait_for(1), true)
  one.purging.purge({ '/2', 'tag:x' }, 100)
  one.purging.purge({ '/1' }, 90)
  one.own()
  equal(text(told), '101:/2,102:tag:x,103:/1')
  equal(is_held(), true)
  one.peers()
  equal(text(one.heard.a), '103:/1,101:/2,102:tag:x')
  equal(text(one.heard.b), '103:/1,101:/2,102:tag:x')
  equal(is_held(), false)
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
  one.peers()
  equal(text(one.heard.a), '105:/1,300:/2')
  told = {}
  one.late()
  one.own()
  equal(text(told), '')
  equal(is_held(), true)
  now = 1000
  one.late()
  one.own()
  equal(text(told), '301:/1')
  one.peers()
  equal(text(one.heard.a), '301:/1')
  one.late()
  one.own()
  equal(text(told), '')
end)

test('what another pod says is purged once, and told on only where not all are known', function()
  for _, is_crowded in ipairs({ false, true }) do
    local others = {}
    for n = 1, 20 do others[n] = 'p' .. n end
    local one = pod(others, is_crowded)
    local ms = os.time() * 1000
    for _ = 1, 3 do one.purging.receive(('ab.%d:/1,ab.%d:*,ab.7:/old'):format(ms, ms + 1)) end
    one.own()
    equal(text(told), ('%d:/1,%d:*'):format(ms, ms + 1))
    one.peers()
    local count = 0
    for _, items in pairs(one.heard) do
      count = count + #items
      if #items > 0 then equal(items[1], ('%d:/1,%d:*'):format(ms, ms + 1)) end
    end
    equal(count, is_crowded and 8 or 0)
  end
end)

test('who is told to purge all because he has missed something tells nobody', function()
  local one = pod({ 'a' }, true)
  one.purging.receive('*')
  one.own()
  equal(text(told), '0:*')
  one.peers()
  equal(text(one.heard.a), '')
end)

test('what is none changes nothing', function()
  local one = pod({ 'a' }, true)
  for _, said in ipairs({ '', 'nonsense', 'x.1:/1', ('a'):rep(64) .. '.1:/1', 'ab.' .. ('9'):rep(16) .. ':/1' }) do
    one.purging.receive(said)
  end
  one.purging.receive(nil)
  one.own()
  equal(text(told), '')
end)

test('a pod that did not answer is told what it has missed; one that has missed too much, to purge all', function()
  local one = pod({ 'a' })
  one.peers()
  one.away.a = true
  for n = 1, 2 do
    one.purging.purge({ '/' .. n }, n)
    one.peers()
  end
  equal(text(one.heard.a), '')
  one.away.a = nil
  one.peers()
  equal(text(one.heard.a), '1:/1,2:/2')
  one.away.a = true
  for n = 1, 1100 do
    one.purging.purge({ '/many/' .. n }, n + 2)
    one.peers()
  end
  one.away.a = nil
  one.peers()
  equal(one.heard.a[1], '*')
  equal(one.heard.a[2]:match('^[^,]*'), '79:/many/77')
  equal(one.heard.a[#one.heard.a]:match('[^,]*$'), '1102:/many/1100')
  equal(#one.heard.a < 20, true)
end)

test('a pod that was away is told from where it was; one that nobody knows, all that there is', function()
  local one = pod({ 'a' })
  one.purging.purge({ '/1' }, 1)
  one.peers()
  equal(text(one.heard.a), '1:/1')
  one.list[1] = nil
  one.purging.purge({ '/2' }, 2)
  one.peers()
  one.meet('a')
  one.meet('b')
  one.peers()
  equal(text(one.heard.a), '2:/2')
  equal(text(one.heard.b), '1:/1,2:/2')
end)

test('whoever runs in between, no change is lost, and a drain waits for all', function()
  local one = pod({ 'a' })
  local items, others, free_drains = {}, 0, 0
  for n = 1, 40 do items[n] = '/' .. n .. (n % 2 == 0 and ('x'):rep(200) or '') end
  meanwhile = function()
    others = others + 1
    local run = meanwhile
    meanwhile = function() end
    one.purging.purge({ '/other/' .. others }, 1)
    one.own()
    one.peers()
    meanwhile = run
  end
  for _ = 1, 6 do one.purging.purge(items, 1) end
  meanwhile = function() end
  one.peers()
  -- From here on there is nothing but what waits for its turn.
  meanwhile = function()
    if not is_held() then free_drains = free_drains + 1 end
  end
  now = 5000
  one.late()
  one.own()
  one.peers()
  meanwhile = function() end
  equal(free_drains, 0)
  equal(is_held(), false)
  for _, lists in ipairs({ told, one.heard.a }) do
    local count = {}
    for _, list in ipairs(lists) do
      for item in list:gmatch('%d+:([^,]+)') do count[item] = (count[item] or 0) + 1 end
    end
    for _, item in ipairs(items) do equal(count[item] >= 1, true) end
    for n = 1, others do equal(count['/other/' .. n], 1) end
  end
end)

test('a home is told before it is asked for a page', function()
  local one = pod({ 'a' })
  one.purging.purge({ '/1' }, 1)
  equal(one.catch_up(one.list[1]), true)
  equal(text(one.heard.a), '1:/1')
  one.away.a = true
  equal(one.catch_up(one.list[1]), true)
  one.purging.purge({ '/2' }, 2)
  equal(one.catch_up(one.list[1]), false)
  one.away.a = nil
  equal(one.catch_up(one.list[1]), true)
  equal(text(one.heard.a), '2:/2')
  -- Another coroutine is sending: the page waits for its end.
  local sleep = core.msleep
  core.msleep = function()
    one.list[1].is_sending_purges = false
    sleep()
  end
  one.list[1].is_sending_purges = true
  one.purging.purge({ '/2b' }, 3)
  equal(one.catch_up(one.list[1]), true)
  core.msleep = sleep
  equal(text(one.heard.a), '3:/2b')
  -- Not if that takes long, or if the other coroutine does not end.
  one.list[1].is_sending_purges = true
  one.purging.purge({ '/3' }, 3)
  equal(one.catch_up(one.list[1]), false)
  one.list[1].is_sending_purges = false
  for n = 4, 68 do
    one.away.a = true
    one.purging.purge({ '/' .. n }, n)
    one.peers()
  end
  one.away.a = nil
  equal(one.catch_up(one.list[1]), false)
  equal(text(one.heard.a), '')
end)

test('a drain waits for what others have to hear of, and not for what others have said', function()
  local one = pod({ 'a' })
  local said = {}
  for n = 1, 10 do said[n] = 'ab.' .. n .. ':/1' end
  one.purging.receive(table.concat(said, ','))
  equal(is_held(), false)
  for n = 1, 6 do one.purging.purge({ '/2' }, n) end
  one.peers()
  equal(is_held(), true)
  now = 5000
  -- A purge that need not wait takes along what waits.
  one.purging.receive('ab.99:/2')
  one.peers()
  equal(is_held(), false)
  equal(one.heard.a[#one.heard.a], '6:/2')
end)

test('pages that wait for their turn are bounded', function()
  local one = pod({})
  for n = 1, 6 * 4097 do
    one.purging.purge({ '/' .. ('x'):rep(200) .. (n - 1) // 6 }, n)
    one.own()
  end
  now, told = 10000, {}
  one.late()
  one.own()
  equal(told[1]:match('%d+:%*') ~= nil, true)
end)

test('while nginx does not answer no list grows without end', function()
  local one = pod({})
  for n = 1, 1000 do one.purging.purge({ '/' .. n .. ('x'):rep(2000) }, n) end
  one.own()
  equal(text(told), '0:*')
end)
