local search = require('stickiness.search')

local A, B = 1, 2
local function pods(prefix, count)
  local list = {}
  for index = 1, count do list[index] = { name = prefix .. index } end
  return list
end

-- What each says by the first letter of its name, and in which order they were asked.
local function asking(says)
  local asked = {}
  local function ask(peer)
    asked[#asked + 1] = peer.name
    local answer = says[peer.name] or says[peer.name:sub(1, 1)]
    return answer, answer == 'yes' and 'ticket' or nil
  end
  return ask, asked
end
local function letters(asked)
  local text = ''
  for _, name in ipairs(asked) do text = text .. name:sub(1, 1) end
  return text
end

test('one pod of each revision is asked, until one has it', function()
  local ask, asked = asking({ a = 'no', b = 'yes' })
  local peer, hand_over, revision = search({ [A] = pods('a', 50), [B] = pods('b', 50) }, {}, nil, ask)
  equal(peer.name:sub(1, 1), 'b')
  equal(hand_over, 'ticket')
  equal(revision, B)
  equal(letters(asked), 'ab')
end)

test('who had the last file is asked first', function()
  local ask, asked = asking({ a = 'no', b = 'yes' })
  search({ [A] = pods('a', 1), [B] = pods('b', 1) }, {}, B, ask)
  equal(letters(asked), 'b')
  -- One that lives no longer is nobody.
  ask, asked = asking({ a = 'yes' })
  search({ [A] = pods('a', 1) }, {}, 99, ask)
  equal(letters(asked), 'a')
end)

test('nobody has it when each revision has said so', function()
  local ask = asking({ a = 'no', b = 'no' })
  local peer, is_sure = search({ [A] = pods('a', 9), [B] = pods('b', 9) }, {}, nil, ask)
  equal(peer, nil)
  equal(is_sure, true)
end)

test('another pod is asked where one does not answer, and then nobody is sure', function()
  local ask, asked = asking({ b = 'no' })
  local peer, is_sure = search({ [A] = pods('a', 9), [B] = pods('b', 9) }, {}, nil, ask)
  equal(peer, nil)
  equal(is_sure, false)
  equal(letters(asked), 'aab')
  ask, asked = asking({ a1 = 'yes', a2 = nil })
  for _ = 1, 20 do equal(search({ [A] = pods('a', 2) }, {}, nil, ask).name, 'a1') end
end)

test('pods of which nobody knows the revision come last, and leave nobody sure', function()
  local ask, asked = asking({ a = 'no', u = 'no' })
  local peer, is_sure = search({ [A] = pods('a', 1) }, pods('u', 2), nil, ask)
  equal(peer, nil)
  equal(is_sure, false)
  equal(letters(asked), 'auu')
  ask = asking({ a = 'no', u = 'yes' })
  local _, hand_over, revision = search({ [A] = pods('a', 1) }, pods('u', 2), nil, ask)
  equal(hand_over, 'ticket')
  equal(revision, nil)
end)

test('so many are asked at most, however many there are', function()
  local ask, asked = asking({})
  local others = {}
  for revision = 1, 30 do others[revision] = pods('a', 30) end
  local peer, is_sure = search(others, pods('u', 300), nil, ask)
  equal(peer, nil)
  equal(is_sure, false)
  equal(#asked, 8)
end)
