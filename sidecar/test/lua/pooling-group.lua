local group = require('pooling.group')
local live = require('live.values')
local resting = require('resting')

local settings = { revision = '00000000ab', ['any-revision'] = 'any' }
resting.start(settings)

local function group_with(across, which)
  live['across-revisions'], live['resting-revision'] = across, which
  return group(settings)
end

test('pods of one revision share their work, or pods of all', function()
  equal(group_with(0, nil), '00000000ab')
  equal(group_with(1, nil), 'any')
end)

test('a pod of a revision that rests has no part in the work of others', function()
  equal(group_with(1, 0xab), '00000000ab')
  equal(group_with(0, 0xab), '00000000ab')
end)

test('while there is a canary each side keeps to itself', function()
  live['canary-revision'] = 0xac
  equal(group_with(1, nil), '00000000ab')
  live['canary-revision'] = nil
  equal(group_with(1, nil), 'any')
end)

test('where people stay at a revision, too', function()
  for setting, expected in pairs({ [0] = 'any', [1] = 'any', [2] = '00000000ab' }) do
    live['sticky-cookie'] = setting
    equal(group_with(1, nil), expected)
  end
  live['sticky-cookie'] = nil
end)

test('it is meant, and no other one', function()
  equal(group_with(1, 0xac), 'any')
  equal(group_with(1, 0xab00000000), 'any')
end)

test('a pod whose revision is no number never rests', function()
  resting.start({ revision = 'none' })
  equal(group_with(1, 0), 'any')
end)
