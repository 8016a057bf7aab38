local new_changes = require('cache.changes')

-- Items of all after a number, and whether some are lost.
local function after(changes, number, now)
  local found, is_lost = {}, false
  while true do
    local change, at, lost = changes:next(number, now)
    is_lost = is_lost or lost
    if not change then return table.concat(found, ' ') .. (is_lost and ' lost' or '') end
    found[#found + 1], number = change.items, at
  end
end

local function add(changes, items, now) return changes:add({ items = items }, now) end

test('they are given in the order in which they came', function()
  local changes = new_changes()
  for _, items in ipairs({ 'a', 'b', 'c' }) do add(changes, items, 0) end
  equal(after(changes, 0, 0), 'a b c')
  equal(after(changes, 2, 0), 'c')
  equal(after(changes, 3, 0), '')
end)

test('old ones go, and nothing is lost by that', function()
  local changes = new_changes()
  add(changes, 'old', 0)
  add(changes, 'new', 599999)
  equal(after(changes, 0, 599999), 'old new')
  equal(after(changes, 0, 600000), 'new')
  add(changes, 'next', 700000)
  equal(after(changes, 0, 700000), 'new next')
end)

test('too many, or too large, are lost', function()
  for _, size in ipairs({ 1, 8000 }) do
    local changes = new_changes()
    for n = 1, 2000 do add(changes, ('x'):rep(size), n) end
    local _, first, is_lost = changes:next(0, 2000)
    equal(first, size == 1 and 977 or 2000 - 1024 * 1024 // 8000 + 1)
    equal(is_lost, true)
    equal(select(3, changes:next(first - 1, 2000)), false)
  end
end)

test('those before a moment', function()
  local changes = new_changes()
  equal(changes:before(10, 100), 0)
  for _, at in ipairs({ 10, 20, 30 }) do add(changes, 'x', at) end
  equal(changes:before(15, 30), 1)
  equal(changes:before(100, 30), 0)
  equal(changes:before(1, 100), 3)
end)
