local new_changes = require('cache.changes')

-- All after a number, as they are given.
local function after(changes, number)
  local found = {}
  while true do
    local text, at = changes:next(number)
    if not text then return table.concat(found, ' ') end
    found[#found + 1], number = text, at
  end
end

test('they are given in the order in which they came', function()
  local changes = new_changes()
  equal(after(changes, 0), '')
  for _, text in ipairs({ 'a', 'b', 'c' }) do changes:add(text) end
  equal(after(changes, 0), 'a,b,c')
  equal(after(changes, 2), 'c')
  equal(after(changes, 3), '')
end)

test('whoever has missed some is told to purge all, and then the rest', function()
  for _, size in ipairs({ 1, 8000 }) do
    local changes = new_changes()
    for n = 1, 2000 do changes:add(('x'):rep(size)) end
    local kept = size == 1 and 1024 or 1024 * 1024 // 8000
    local text, number = changes:next(5)
    equal(text, '*')
    equal(number, 2000 - kept)
    local first, last = changes:next(number)
    equal(first, size == 1 and ('x,'):rep(kept - 1) .. 'x' or ('x'):rep(size))
    equal(last, size == 1 and 2000 or number + 1)
    equal(changes:next(number - 1), '*')
  end
end)
