local new_budget = require('budget')
local new_recent = require('recent')

local function budget(each, all)
  return new_budget({ burst = each, per_second = 10 }, { burst = all, per_second = function() return 50 end })
end
local function spent(one, client, count, now)
  local done = 0
  for _ = 1, count do
    if one:may(client, now) then
      one:spend(client, now)
      done = done + 1
    end
  end
  return done
end

test('a client has his part, and gets it back with time', function()
  local one = budget(5, 100)
  equal(spent(one, 'a', 50, 1000), 5)
  equal(spent(one, 'a', 50, 1100), 1)
  equal(spent(one, 'a', 50, 1200), 1)
  equal(spent(one, 'a', 50, 999999), 5)
end)

test('one who takes all of his leaves the others theirs', function()
  local one = budget(5, 100)
  spent(one, 'a', 50, 0)
  equal(spent(one, 'b', 50, 0), 5)
end)

test('all together have theirs, however many they are', function()
  local one = budget(5, 20)
  local done = 0
  for index = 1, 5000 do done = done + spent(one, 'client-' .. index, 1, 0) end
  equal(done, 20)
  for index = 1, 5000 do done = done + spent(one, 'client-' .. index, 1, 1000) end
  equal(done, 40)
  for index = 1, 5000 do done = done + spent(one, 'client-' .. index, 1, 1200) end
  equal(done, 50)
end)

test('what was not in vain is given back, and no more than that', function()
  local one = budget(2, 100)
  for _ = 1, 1000 do
    one:spend('a', 0)
    one:refund('a', 0)
  end
  equal(spent(one, 'a', 50, 0), 2)
  for _ = 1, 50 do one:refund('b', 0) end
  equal(spent(one, 'b', 50, 0), 2)
end)

test('what was said is remembered for a while, and of so many things', function()
  local recent = new_recent(3, 100)
  recent:add('a', 1, 0)
  equal(recent:get('a', 99), 1)
  equal(recent:get('a', 100), nil)
  recent:add('a', 2, 200)
  for index = 1, 3 do recent:add('b' .. index, index, 200) end
  equal(recent:get('b3', 200), 3)
  local count = 0
  for _ in pairs(recent.entries) do count = count + 1 end
  equal(count, 3)
  equal(recent:get('a', 200), nil)
  -- Said again it takes no other place.
  for index = 1, 50 do recent:add('b3', index, 200) end
  equal(recent:get('b1', 200), 1)
end)
