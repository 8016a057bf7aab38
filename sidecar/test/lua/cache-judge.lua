-- cache/judge.lua and cache/fields.lua
local fields = require('cache.fields')
local judge = require('cache.judge')

local NOW = fields.date('Tue, 24 Nov 2026 12:00:00 GMT')
local SETTINGS = {
  ['kept-bytes'] = 1000, ['stale-while-revalidate-s'] = 7, ['stale-if-error-s'] = 300, ['max-ttl-s'] = 2147483648, transforms = 0,
}

-- Headers as { name, value, name, value ... }
local function judged(headers, status, ttl_s, settings)
  return judge(status or 200, function(name)
    local lines = {}
    for index = 1, #headers, 2 do
      if headers[index] == name then lines[#lines + 1] = headers[index + 1] end
    end
    return lines
  end, ttl_s, settings or SETTINGS, NOW)
end

-- For how long, or why not.
local function kept(...)
  local page, why = judged(...)
  return page and page.until_s - NOW or why
end

local function control(value) return { 'cache-control', value } end

test('dates in three forms', function()
  equal(fields.date('Sun, 06 Nov 1994 08:49:37 GMT'), 784111777)
  equal(fields.date('Sunday, 06-Nov-94 08:49:37 GMT'), 784111777)
  equal(fields.date('Sun Nov  6 08:49:37 1994'), 784111777)
  equal(fields.date('Thu, 01 Jan 1970 00:00:00 GMT'), 0)
  equal(fields.date('Thu, 29 Feb 2024 00:00:00 GMT'), 1709164800)
  for _, text in ipairs({ '', '0', 'soon', 'Sun, 06 Foo 1994 08:49:37 GMT', 'Sun, 06 Nov 1994 08:49:37 CET' }) do equal(fields.date(text), nil) end
end)

test('directives: upper case, quotes, blanks, lines, nonsense', function()
  local found = fields.directives({ 'Max-Age=10 ,no-cache="a, b=c", , =x, foo', 'max-age=20,S-MAXAGE="5"' })
  equal(found['max-age'], '10')
  equal(found['no-cache'], '"a, b=c"')
  equal(found['foo'], true)
  equal(fields.seconds(found['s-maxage']), 5)
  equal(found['b'], nil)
end)

test('s-maxage, then max-age, then Expires', function()
  equal(kept(control('max-age=60')), 60)
  equal(kept(control('max-age=60, s-maxage=10')), 10)
  equal(kept({ 'expires', 'Tue, 24 Nov 2026 12:00:30 GMT' }), 30)
  equal(kept({ 'expires', 'Tue, 24 Nov 2026 12:00:30 GMT', 'cache-control', 'max-age=5' }), 5)
  equal(kept({ 'expires', 'Tue, 24 Nov 2026 11:00:30 GMT', 'date', 'Tue, 24 Nov 2026 11:00:00 GMT' }), 'stale')
  equal(kept({ 'expires', '0' }), 'stale')
  equal(kept({}), 'no-lifetime')
  equal(kept(control('max-age=soon')), 'stale')
  equal(kept(control('max-age=0')), 'stale')
  equal(kept(control('max-age=99999999999999999999')), 2147483648)
end)

test('it is as old as it says, or as its date says', function()
  equal(kept({ 'cache-control', 'max-age=60', 'age', '20' }), 40)
  equal(kept({ 'cache-control', 'max-age=60', 'age', '60' }), 'stale')
  equal(kept({ 'cache-control', 'max-age=60', 'date', 'Tue, 24 Nov 2026 11:59:50 GMT' }), 50)
  for _, age in ipairs({ '', 'x', '-1', '1.0', '0, 0', '1;a' }) do equal(kept({ 'cache-control', 'max-age=60', 'age', age }), 'age') end
  equal(kept({ 'cache-control', 'max-age=60', 'age', '0', 'age', '0' }), 'age')
  equal(judged({ 'cache-control', 'max-age=60', 'age', '20' }).age_s, 20)
end)

test('what is for one alone', function()
  for _, word in ipairs({ 'private', 'no-store', 'no-cache' }) do
    equal(kept(control(word .. ', max-age=60')), word)
    equal(kept(control('max-age=60,' .. word:upper())), word)
    equal(kept(control('max-age=60, ' .. word .. '="x, y"')), word)
  end
  equal(kept({ 'cache-control', 'max-age=60', 'set-cookie', 'a=b' }), 'set-cookie')
  equal(kept({ 'cache-control', 'max-age=60', 'content-length', '1001' }), 'too-large')
  equal(kept({ 'cache-control', 'max-age=60', 'content-range', 'bytes 0-1/2' }), 'range')
end)

test('no page is kept for longer than the user lets it, whatever the application says', function()
  local bounded = { ['kept-bytes'] = 1000, ['stale-while-revalidate-s'] = 7, ['stale-if-error-s'] = 300, ['max-ttl-s'] = 20, transforms = 0 }
  equal(kept(control('s-maxage=31536000'), 200, nil, bounded), 20)
  equal(kept(control('s-maxage=10'), 200, nil, bounded), 10)
  equal(kept({ 'cache-control', 'max-age=3600', 'age', '3590' }, 200, nil, bounded), 10)
  equal(kept({ 'cache-control', 'max-age=3600', 'age', '60' }, 200, nil, bounded), 20)
  -- That of a path is the user's own.
  equal(kept({}, 200, 600, bounded), 600)
  -- An older operator does not write the setting.
  bounded['max-ttl-s'] = nil
  equal(kept(control('s-maxage=31536000'), 200, nil, bounded), 60)
end)

test('what is said to proxies of the application counts where it is stricter', function()
  local function both(surrogate, value) return { 'cache-control', value or 'max-age=60', 'surrogate-control', surrogate } end
  equal(kept(both('no-store')), 'no-store')
  equal(kept(both('content="ESI/1.0", No-Store')), 'no-store')
  equal(kept(both('max-age=0')), 'stale')
  equal(kept(both('max-age=10')), 10)
  equal(kept(both('max-age="10"')), 10)
  equal(kept(both('max-age=10+600')), 10)
  equal(kept(both('max-age=soon')), 'stale')
  equal(kept(both('max-age=3600')), 60)
  equal(kept({ 'cache-control', 'max-age=60', 'age', '4', 'surrogate-control', 'max-age=10' }), 6)
  -- For another one.
  equal(kept(both('max-age=10;cdn, no-store;cdn')), 60)
  -- It is no leave.
  equal(kept(both('max-age=10', 'no-store')), 'no-store')
  equal(kept({ 'surrogate-control', 'max-age=10' }), 'no-lifetime')
  equal(kept(both('no-store'), 200, 15), 'no-store')
end)

test('statuses that are understood', function()
  for _, status in ipairs({ 200, 203, 301, 302, 308 }) do equal(kept(control('max-age=60'), status), 60) end
  for _, status in ipairs({ 201, 206, 304, 401, 407, 429, 500, 503, 599 }) do equal(kept(control('max-age=60'), status), 'status') end
  equal(kept(control('max-age=60, no-store, must-understand')), 60)
  equal(kept(control('max-age=60, no-store, must-understand'), 599), 'status')
end)

test('nobody may transform it', function()
  equal(kept(control('max-age=60, no-transform')), 60)
  local transforms = { ['kept-bytes'] = 1, ['stale-while-revalidate-s'] = 0, ['stale-if-error-s'] = 0, transforms = 1 }
  equal(kept(control('max-age=60, no-transform'), 200, nil, transforms), 'no-transform')
end)

test('an error is kept only if that is said to caches', function()
  for _, status in ipairs({ 400, 403, 404, 405, 410, 414, 451 }) do
    equal(kept(control('max-age=60'), status), 'status')
    equal(kept({ 'expires', 'Tue, 24 Nov 2026 12:00:30 GMT' }, status), 'status')
    equal(kept(control('max-age=60, s-maxage=10'), status), 10)
    equal(kept(control('s-maxage=10, private'), status), 'private')
  end
end)

test('the choice of a user', function()
  equal(kept({}, 200, 15), 15)
  equal(kept(control('no-cache, max-age=0, must-revalidate'), 200, 15), 15)
  equal(kept(control('max-age=3600'), 200, 15), 15)
  equal(kept(control('private'), 200, 15), 'private')
  equal(kept(control('no-store'), 200, 15), 'no-store')
  equal(kept({ 'age', 'x' }, 200, 15), 15)
  equal(kept({ 'set-cookie', 'a=b' }, 200, 15), 'set-cookie')
  for _, status in ipairs({ 301, 302, 303, 307, 308 }) do
    equal(kept({}, status, 15), 'no-lifetime')
    equal(kept(control('max-age=60'), status, 15), 60)
  end
  for _, status in ipairs({ 400, 403, 404, 405, 410, 451, 500 }) do equal(kept({}, status, 15), 'status') end
  equal(kept(control('s-maxage=60'), 404, 15), 60)
end)

test('how long after its end', function()
  local function windows(value, ttl_s)
    local page = judged(control(value), 200, ttl_s)
    return page.revalidate_s .. ' ' .. page.error_s
  end
  equal(windows('max-age=60'), '7 300')
  equal(windows('max-age=60, stale-while-revalidate=5, stale-if-error=6'), '5 6')
  equal(windows('max-age=60, stale-while-revalidate=x'), '0 300')
  equal(windows('max-age=60, stale-while-revalidate=5, must-revalidate'), '0 0')
  equal(windows('max-age=60, proxy-revalidate'), '0 0')
  equal(windows('s-maxage=60'), '0 0')
  equal(windows('s-maxage=60, stale-while-revalidate'), '7 300')
  equal(windows('s-maxage=60, stale-while-revalidate=9'), '9 300')
  equal(windows('must-revalidate', 5), '7 300')
end)

test('whatever bytes Surrogate-Control has, a page is not kept for longer than without it', function()
  local PARTS = { 'max-age', '=', '60', '99999999999999999999', '+', ';', ',', '"', 'no-store', ' ', 'content', 'ESI/1.0', '-1', '\\', '\t', '(', '%', 'x' }
  local state = 7
  local function random(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return state // 65536 % n + 1
  end
  for _ = 1, 5000 do
    local words = {}
    for i = 1, random(8) do words[i] = PARTS[random(#PARTS)] end
    local said = { 'cache-control', 'max-age=50', 'surrogate-control', table.concat(words) }
    local got = kept(said)
    equal(got == 'stale' or got == 'no-store' or math.type(got) == 'integer' and got > 0 and got <= 50, true)
    equal(kept({ 'cache-control', 'private, max-age=50', 'surrogate-control', table.concat(words) }), 'private')
  end
end)
