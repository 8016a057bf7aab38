local document = require('live.document')

local function lines(more)
  local all = { version = '1', serial = 'ab12' }
  for name, value in pairs(document.defaults()) do all[name] = tostring(value) end
  for name, value in pairs(more or {}) do all[name] = value end
  local text = '# comment\n'
  for name, value in pairs(all) do
    if value then text = text .. name .. '=' .. value .. '\n' end
  end
  return text
end

local function why(text)
  local values, reason = document.parse(text)
  return values and 'taken' or reason
end

test('a whole file is taken, with its serial', function()
  local values, serial = document.parse(lines({ ['queue-length-max'] = '7' }))
  equal(values['queue-length-max'], 7)
  equal(values['asks-max'], 4)
  equal(serial, 'ab12')
  equal(values['version'], nil)
end)

test('what some pods have is taken, what nobody knows is left out', function()
  local more = { ['priority-a-b-delay-ms'] = '300000', ['ttl-r12ab-s'] = '86400', ['of-a-later-one'] = '99999999' }
  local values = document.parse(lines(more))
  equal(values['priority-a-b-delay-ms'], 300000)
  equal(values['ttl-r12ab-s'], 86400)
  equal(values['of-a-later-one'], nil)
end)

test('whole or not at all', function()
  equal(why(lines()), 'taken')
  equal(why(lines():sub(1, -2)), 'does not end with a line')
  equal(why(''), 'does not end with a line')
  equal(why(lines({ ['asks-max'] = false })), 'does not say asks-max')
  equal(why(lines() .. 'asks-max=3\n'), 'says asks-max twice')
  equal(why(lines() .. 'asks max=3\n'), 'has a line that is not name=number')
  equal(why(lines() .. '=\n'), 'has a line that is not name=number')
  equal(why(lines({ ['asks-max'] = 'x' })), 'asks-max is no whole number')
  equal(why(lines({ ['asks-max'] = '1e3' })), 'asks-max is no whole number')
  equal(why(lines({ ['asks-max'] = '99999999999999999999' })), 'asks-max is no whole number')
  equal(why(lines({ serial = false })), 'has no serial')
  equal(why(lines() .. ('#' .. ('x'):rep(document.BYTES_MAX)) .. '\n'), 'is too long')
end)

test('a canary is whole, or there is none', function()
  local canary = { ['canary-revision'] = '110562683452', ['canary-stable'] = '1099511627775', ['canary-share'] = '2500' }
  local values = document.parse(lines(canary))
  equal(values['canary-revision'], 110562683452)
  equal(values['canary-share'], 2500)
  equal(values['canary-until-s'], nil)
  for name in pairs(canary) do
    local half = {}
    for other, value in pairs(canary) do half[other] = other ~= name and value end
    equal(why(lines(half)), 'has half of a canary')
  end
  canary['canary-share'] = '10001'
  equal(why(lines(canary)), 'canary-share is not from 0 to 10000')
end)

test('another version, another time', function()
  equal(why(lines({ version = '2' })), 'is of another version')
  equal(why(lines({ version = false })), 'is of another version')
end)

test('bounds', function()
  for name, value in pairs({
    ['queue-length-max'] = '10001', ['asks-max'] = '0', shed = '2', concurrency = '1001', ['concurrency-min'] = '0',
    ['render-ms'] = '99', ['worker-ms'] = '1099', ['worker-after-waiting-ms'] = '86400001', ['stale-if-error-s'] = '3601',
  }) do
    equal(why(lines({ [name] = value })):match('^[%w-]+ is not from') ~= nil, true)
  end
  equal(why(lines({ ['concurrency-min'] = '3', ['concurrency-max'] = '2' })), 'has bounds that cross')
  equal(why(lines({ ['worker-ms'] = '29999' })), 'has time limits that cross')
  equal(why(lines({ ['worker-after-waiting-ms'] = '30999' })), 'has time limits that cross')
  equal(why(lines({ ['drain-timeout-ms'] = '0' })), 'has time limits that cross')
end)
