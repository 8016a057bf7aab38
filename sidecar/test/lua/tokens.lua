local settings_of = require('settings')
local tokens = require('peers.tokens')

local KEY = string.rep('k', 32)

test('a token is 32 hex digits, and so is the proof that goes with it', function()
  local token, proof = tokens.pair(KEY, 'hello', 'a', 'b')
  equal(tokens.is_token(token), true)
  equal(tokens.is_token(proof), true)
  equal(token == proof, false)
  equal(tokens.is_token(tokens.identity), true)
  equal(tokens.random() == tokens.random(), false)
end)

test('another purpose, field, order or key is another token', function()
  local token = tokens.pair(KEY, 'hello', 'a', 'b')
  equal(tokens.same(token, (tokens.pair(KEY, 'hello', 'a', 'b'))), true)
  equal(tokens.same(token, (tokens.pair(KEY, 'welcome', 'a', 'b'))), false)
  equal(tokens.same(token, (tokens.pair(KEY, 'hello', 'b', 'a'))), false)
  equal(tokens.same(token, (tokens.pair(KEY .. 'k', 'hello', 'a', 'b'))), false)
end)

test('what a stranger sends is a token or is none', function()
  local token = tokens.random()
  for place = 1, 32, 8 do
    local digit = token:sub(place, place) == '0' and '1' or '0'
    equal(tokens.same(token:sub(1, place - 1) .. digit .. token:sub(place + 1), token), false)
  end
  local shorter = token:sub(2)
  for _, text in ipairs({ '', 'x', token .. 'a', string.rep('A', 32), shorter, shorter .. '\n', shorter .. '\0' }) do
    equal(tokens.is_token(text), false)
    equal(tokens.same(text, token), false)
  end
  equal(tokens.same(nil, token), false)
end)

test('settings are numbers, or texts where that is said; what is wrong or missing is an error with its name', function()
  local settings = settings_of('x.lua', { 'a=1', 'b=two' }, { 'a', 'b' }, { b = true })
  equal(settings.a, 1)
  equal(settings.b, 'two')
  local function message(...) return select(2, pcall(settings_of, 'x.lua', ...)):match('x%.lua: .*') end
  equal(message({ 'a=one' }, {}), 'x.lua: argument "a=one" is not key=value')
  equal(message({ 'a' }, {}), 'x.lua: argument "a" is not key=value')
  equal(message({}, { 'a' }), 'x.lua: argument a is missing')
end)
