-- cache/verdict.lua
local verdict = require('cache.verdict')

local NOW = 1000000

local function of(headers, status)
  return verdict(status or 200, function(name)
    local value = headers[name]
    return type(value) == 'table' and value or value and { value } or {}
  end, NOW)
end

test('a page, with its end and its windows', function()
  local page = of({ ['x-corelane-expires'] = '@1000060', ['x-corelane-stale'] = '10 300', age = '3', ['x-corelane-vary'] = 'Accept-Encoding, Cookie' })
  equal(page.until_s, 1000060)
  equal(page.revalidate_s, 10)
  equal(page.error_s, 300)
  equal(page.age_s, 3)
  equal(page.vary, 'Accept-Encoding, Cookie')
end)

test('the last second counts, and none after it', function()
  equal(type(of({ ['x-corelane-expires'] = '@1000000' })), 'table')
  equal(of({ ['x-corelane-expires'] = '@999999' }), nil)
end)

test('no page: a failure, whoever says so', function()
  for _, status in ipairs({ 500, 502, 503, 504 }) do equal(of({ ['x-corelane-expires'] = '@1000060' }, status), nil) end
  for _, status in ipairs({ 400, 404, 420 }) do equal(of({}, status), nil) end
end)

test('for one client only', function()
  equal(of({ ['x-corelane-alone'] = '1' }, 404), 'alone')
  equal(select(2, of({ ['x-corelane-alone'] = 'private' }, 404)), 'private')
  for _, why in ipairs({ '1', 'a"', ('x'):rep(17) }) do equal(select(2, of({ ['x-corelane-alone'] = why }, 404)), 'home') end
  equal(of({ ['x-corelane-expires'] = '0' }), 'alone')
  equal(select(2, of({ ['x-corelane-expires'] = '0' })), 'home')
end)

test('what no home says', function()
  equal(of({}), 'nonsense')
  for _, value in ipairs({ '', '60', '@', '@-1', '@1e9', '@0x10', ' @1000060', '@1000060 ', '@1234567890123', '@' .. ('9'):rep(400) }) do
    equal(of({ ['x-corelane-expires'] = value }), 'nonsense')
  end
  equal(of({ ['x-corelane-expires'] = { '@1000060', '@1000061' } }), 'nonsense')
  equal(of({ ['x-corelane-expires'] = '@1000060', ['set-cookie'] = 'a=b' }), 'nonsense')
  equal(of({ ['x-corelane-expires'] = '@1000060', vary = 'accept, *' }), 'nonsense')
end)

test('what is said beside it has bounds', function()
  local page = of({
    ['x-corelane-expires'] = '@999999999999', ['x-corelane-stale'] = 'a b', age = '-1', ['x-corelane-vary'] = 'Cookie"',
  })
  equal(page.until_s, NOW + 366 * 86400)
  equal(page.revalidate_s, 0)
  equal(page.error_s, 0)
  equal(page.age_s, 0)
  equal(page.vary, nil)
end)
