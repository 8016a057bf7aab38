local decision = require('stickiness.decision')
local ids = require('stickiness.ids')

local STABLE, CANARY, RETAINED = 0x7f3a9c21d0, 0x19be04aa3c, 0xaabbccddee
local NAMES = { one = STABLE, two = CANARY, old = RETAINED }

local function request(more)
  local all = { headers = 0, is_navigation = false }
  for name, value in pairs(more) do all[name] = value end
  return all
end
local function with_id(id) return request({ headers = 1, header = id }) end

local function world(more)
  local all = {
    named = function(id) return NAMES[id] end,
    lives = function(revision) return revision == STABLE or revision == CANARY or revision == RETAINED end,
    has_cookie = true,
  }
  for name, value in pairs(more or {}) do all[name] = value end
  return all
end
local function canary_at(share) return { canary = { revision = CANARY, stable = STABLE, share = share } } end

local function expect(revision, by, ...)
  local actual, how = decision.of(...)
  equal(actual, revision)
  equal(how, by)
end

test('who names a revision gets it, by header or query; the header comes first', function()
  expect(RETAINED, 'id', with_id('old'), world())
  expect(RETAINED, 'id', request({ query = 'old' }), world())
  expect(STABLE, 'id', request({ headers = 1, header = 'one', query = 'old' }), world())
  -- One that nobody has is not made up for by another one.
  expect(nil, nil, request({ headers = 1, header = 'nobody', query = 'old' }), world())
  expect(nil, nil, request({ headers = 1, header = '', query = 'old' }), world())
end)

test('several headers name nothing', function()
  expect(nil, nil, request({ headers = 2, header = 'old', query = 'old' }), world())
end)

test('what is no id names nothing', function()
  for _, text in ipairs({ '', ' old', 'old ', 'o/ld', 'old\0', 'old,old', '\xc3\xa4', ('x'):rep(65), '%6fld' }) do
    equal(ids.valid(text), nil)
  end
  for _, text in ipairs({ 'a', ('x'):rep(64), '2026-11-26.7f3a9c2', '_', '..' }) do equal(ids.valid(text), text) end
  equal(ids.valid(nil), nil)
end)

test('a canary that has not begun, or that was aborted, is named by nobody', function()
  expect(nil, nil, with_id('two'), world(canary_at(0)))
  expect(CANARY, 'id', with_id('two'), world(canary_at(1)))
  expect(STABLE, 'id', with_id('one'), world(canary_at(0)))
  expect(RETAINED, 'id', with_id('old'), world(canary_at(0)))
end)

local function with_cookie(text, is_navigation) return request({ cookie = text, is_navigation = is_navigation }) end

test('a cookie keeps a person, where there are cookies, and while the revision lives', function()
  expect(RETAINED, 'cookie', with_cookie('aabbccddee', true), world())
  expect(RETAINED, 'cookie', with_cookie('aabbccddee', false), world())
  expect(nil, nil, with_cookie('aabbccddee', true), world({ has_cookie = false }))
  expect(nil, nil, with_cookie('0000000001', true), world())
end)

test('what is no revision keeps nobody', function()
  for _, text in ipairs({ '', 'aabbccdde', 'aabbccddeee', 'AABBCCDDEE', '0xaabbccdd', 'aabbccdde\0', ' aabbccdde' }) do
    expect(nil, nil, with_cookie(text, true), world())
  end
end)

test('while there is a canary a page is of its place, and what belongs to a page of that page', function()
  local now = world(canary_at(500))
  expect(nil, nil, with_cookie('7f3a9c21d0', true), now)
  expect(nil, nil, with_cookie('19be04aa3c', true), now)
  expect(STABLE, 'cookie', with_cookie('7f3a9c21d0', false), now)
  expect(CANARY, 'cookie', with_cookie('19be04aa3c', false), now)
  expect(RETAINED, 'cookie', with_cookie('aabbccddee', true), now)
  expect(nil, nil, with_cookie('19be04aa3c', false), world(canary_at(0)))
end)

test('an id comes before a cookie, and where nobody has it the cookie counts', function()
  expect(STABLE, 'id', request({ headers = 1, header = 'one', cookie = 'aabbccddee' }), world())
  expect(RETAINED, 'cookie', request({ headers = 1, header = 'nobody', cookie = 'aabbccddee' }), world())
end)
