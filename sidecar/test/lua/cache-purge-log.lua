local new_log = require('cache.purge-log')

-- All after a number, as they are given.
local function after(log, number)
  local found = {}
  while true do
    local text, at = log:after(number)
    if not text then return table.concat(found, ' ') end
    found[#found + 1], number = text, at
  end
end

test('they are given in the order in which they came', function()
  local log = new_log()
  equal(after(log, 0), '')
  for _, text in ipairs({ 'a', 'b', 'c' }) do log:append(text) end
  equal(after(log, 0), 'a,b,c')
  equal(after(log, 2), 'c')
  equal(after(log, 3), '')
end)

test('whoever has missed some is told to purge all, and then the rest', function()
  for _, size in ipairs({ 1, 8000 }) do
    local log = new_log()
    for n = 1, 2000 do log:append(('x'):rep(size)) end
    local kept = size == 1 and 1024 or 1024 * 1024 // 8000
    local text, number = log:after(5)
    equal(text, '*')
    equal(number, 2000 - kept)
    local first, last = log:after(number)
    equal(first, size == 1 and ('x,'):rep(kept - 1) .. 'x' or ('x'):rep(size))
    equal(last, size == 1 and 2000 or number + 1)
    equal(log:after(number - 1), '*')
  end
end)
