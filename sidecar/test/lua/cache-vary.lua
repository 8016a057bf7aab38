-- cache/vary.lua
local vary = require('cache.vary')

local KEYED = { ['x-market'] = true }

local function of(words, asked)
  asked = asked or {}
  return vary(words, { shown = asked.shown or {}, withheld = asked.withheld or {}, is_personal = asked.is_personal or false }, KEYED)
end

local function names(...)
  local found, why = of(...)
  return found and table.concat(found.names, ' ') or why
end

test('a page that depends on nothing, or on what is in the key', function()
  equal(names({}), '')
  equal(names({ 'accept-encoding', 'x-market', 'host', 'x-forwarded-proto', 'x-forwarded-host', 'authorization' }), '')
end)

test('variants are told by what it depends on, once', function()
  equal(names({ 'accept-language', 'origin', 'accept-language' }), 'accept-language origin')
end)

test('what the request had and the render was not shown is missing', function()
  local found = of({ 'accept-language', 'origin', 'rsc' }, { withheld = { origin = true, rsc = true, ['user-agent'] = true } })
  equal(table.concat(found.missing, ' '), 'origin rsc')
end)

test('what the render was shown tells variants, whatever the response says', function()
  equal(names({}, { shown = { 'accept-language' } }), 'accept-language')
  equal(names({ 'origin' }, { shown = { 'origin', 'rsc' } }), 'origin rsc')
end)

test('cookies: who has none that matter gets a page of those, who has some one for himself', function()
  equal(of({ 'cookie' }).has_cookies, true)
  equal(of({ 'cookie' }, { withheld = { cookie = true } }).has_cookies, true)
  equal(names({ 'cookie' }, { is_personal = true }), 'cookie')
  equal(of({ 'origin' }, { is_personal = true }).has_cookies, false)
end)

test('what is about one request makes no page for others', function()
  for _, word in ipairs({ '*', 'x-forwarded-for', 'x-real-ip', 'forwarded', 'x-request-id', 'traceparent', 'range', 'x-corelane-personal' }) do
    equal(names({ 'origin', word }), 'vary')
  end
end)

test('nonsense, and more than nginx can tell', function()
  for _, word in ipairs({ 'a"b', ':', ('x'):rep(200), 'é' }) do equal(names({ word }), 'vary') end
  local many = {}
  for n = 1, 20 do many[n] = 'header-' .. n end
  equal(names(many), 'vary')
end)
