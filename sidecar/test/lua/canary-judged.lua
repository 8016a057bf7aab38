local judged = require('canary.judged')
local live = require('live.values')

judged.start('1')
local PAGE = 'epoch=1\nrevision=%d\ncanary=%s\nstable=%s\ncanary-clients=%s\nstable-clients=%s\n'
local revision = 0

-- Another canary, of which nothing is known.
local function begin()
  revision = revision + 1
  live['canary-revision'] = revision
end

local function is(canary, stable, of_canary, of_stable)
  equal(judged.page(), PAGE:format(revision, canary, stable, of_canary or '0', of_stable or '0'))
end

test('before there is one', function() equal(judged.page(), PAGE:format(0, '0 0', '0 0', '0', '0')) end)

test('answers, errors and times of each side', function()
  begin()
  judged.answer(judged.name('canary', judged.CHANCE), 200, nil, '100', 0)
  judged.answer(judged.name('canary', judged.CHANCE), 404, nil, '3', 0)
  judged.answer(judged.name('stable', judged.CHANCE), 500, nil, '7', 0)
  judged.answer(judged.name('stable', judged.CHANCE), 502, 'worker-died', nil, 0)
  judged.answer(judged.name('stable', judged.CHANCE), 504, 'render-timeout', '-1', 0)
  judged.lose(judged.name('stable', judged.CHANCE), 0)
  is('2 0 13:1 54:1', '4 4')
end)

test('who found no place is counted nowhere', function()
  begin()
  judged.answer(judged.name('canary', judged.CHANCE), 200, nil, nil, 0)
  judged.answer(judged.name('canary', judged.CHANCE), 503, 'queue-full', nil, 0)
  judged.answer(judged.name('canary', judged.CHANCE), 503, 'queue-timeout', nil, 0)
  is('1 0', '0 0')
  equal(judged.is_error(503, 'queue-full'), false)
  equal(judged.is_error(503, nil), true)
  equal(judged.is_error(499, nil), false)
end)

test('borders of times', function()
  for ms, bucket in pairs({ [0] = 0, [1] = 0, [2] = 8, [3] = 13, [4] = 16, [8] = 24, [9] = 26, [1024] = 80, [1025] = 81 }) do
    equal(judged.bucket_of(ms), bucket)
  end
  equal(judged.bucket_of(131072), 136)
  equal(judged.bucket_of(999999999), 136)
end)

test('a time that is none', function()
  begin()
  for _, text in ipairs({ '', '-1', '1e3', '1 2', '0x10', '1234567890', 'nan' }) do
    judged.answer(judged.name('canary', judged.CHANCE), 200, nil, text, 0)
  end
  is('7 0', '0 0')
end)

local WHILE = 600000

test('who has failed is told by his name, once in a while; by chance it is an error each time', function()
  begin()
  local mine, other = judged.name('canary', 'a1'), judged.name('canary', 'b2')
  for _ = 1, 5 do judged.answer(mine, 500, nil, nil, 1000) end
  judged.lose(other, 1000)
  is('0 0', '0 0', '6 a1 b2')
  judged.lose(other, 1000 + WHILE - 1)
  is('0 0', '0 0', '7 a1 b2')
  judged.lose(other, 1000 + WHILE)
  is('0 0', '0 0', '8 a1 b2 b2')
  for _ = 1, 5 do judged.answer(judged.name('canary', judged.CHANCE), 500, nil, nil, 1000) end
  is('5 5', '0 0', '8 a1 b2 b2')
end)

test('what he gets else is neither for nor against anybody, nor is how long it took', function()
  begin()
  local mine = judged.name('stable', 'a1')
  for _ = 1, 1000 do judged.answer(mine, 200, nil, '1', 0) end
  is('0 0', '0 0', '0', '100')
  judged.answer(mine, 500, nil, nil, 0)
  is('0 0', '0 0', '0', '100 a1')
  judged.answer(judged.name('stable', 'b2'), 200, nil, '1', 0)
  judged.answer(mine, 200, nil, '1', WHILE)
  is('0 0', '0 0', '0', '102 a1')
end)

test('who could be anybody counts nowhere', function()
  begin()
  judged.answer(judged.name('canary', judged.UNKNOWN), 200, nil, '1', 0)
  judged.answer(judged.name('canary', judged.UNKNOWN), 500, nil, nil, 0)
  judged.lose(judged.name('canary', judged.UNKNOWN), 0)
  judged.answer(judged.name('stable', judged.CHANCE), 200, nil, nil, 0)
  is('0 0', '1 0')
  equal(judged.side_of(judged.name('canary', judged.UNKNOWN)), 'canary')
end)

test('a client on the other side is another one', function()
  begin()
  judged.lose(judged.name('canary', 'a1'), 0)
  judged.lose(judged.name('stable', 'a1'), 0)
  is('0 0', '0 0', '1 a1', '1 a1')
end)

test('no more than so many are remembered, and told of', function()
  begin()
  for n = 0, 4096 do judged.lose(judged.name('canary', ('%x'):format(n)), 0) end
  local last = {}
  for n = 4065, 4096 do last[#last + 1] = ('%x'):format(n) end
  is('0 0', '0 0', '4097 ' .. table.concat(last, ' '))
  -- The oldest is forgotten, the next one is not.
  judged.lose(judged.name('canary', '1'), 1)
  is('0 0', '0 0', '4098 ' .. table.concat(last, ' '))
  judged.lose(judged.name('canary', '0'), 1)
  table.remove(last, 1)
  last[#last + 1] = '0'
  is('0 0', '0 0', '4099 ' .. table.concat(last, ' '))
end)

test('what has come for another canary is not counted for this one', function()
  begin()
  local late = judged.name('canary', judged.CHANCE)
  judged.answer(late, 200, nil, nil, 0)
  begin()
  judged.answer(judged.name('stable', judged.CHANCE), 200, nil, nil, 0)
  judged.answer(late, 500, nil, nil, 0)
  judged.lose(late, 0)
  is('0 0', '1 0')
  live['canary-revision'] = nil
  judged.answer(judged.name('canary', judged.CHANCE), 200, nil, nil, 0)
  is('0 0', '1 0')
end)

test('the page has an end', function()
  begin()
  for ms = 0, 140000, 7 do judged.answer(judged.name('canary', judged.CHANCE), 200, nil, tostring(ms), 0) end
  if #judged.page() > 2048 then error(#judged.page() .. ' bytes') end
end)
