local new_suspects = require('quarantine.suspects')

local SETTINGS = { kills = 2, ['window-ms'] = 1000, ['duration-ms'] = 5000 }

-- A quarantine whose URLs have been answered so often (`counts.all`), and of late (`counts.lately`), and the changes
-- that it has told.
local function quarantine(answered)
  local told, counts = {}, { all = answered, lately = 0 }
  local suspects = new_suspects(SETTINGS, function() return counts.all, counts.lately end, function(what, key, is_in)
    told[#told + 1] = what .. ' ' .. key .. (is_in and '' or ' no more')
  end)
  return suspects, told, counts
end

local function at_large(count)
  return function() return count end
end

test('two kills by one client refuse his requests, by two clients everybody\'s', function()
  local suspects = quarantine(0)
  suspects:note_kill('u', 'me', 'worker-0', 1, 0)
  equal(suspects:is_refused('u', 'me'), false)
  suspects:note_kill('u', 'me', 'worker-1', 1, 10)
  equal(suspects:is_refused('u', 'me'), true)
  equal(suspects:is_refused('u', 'you'), false)
  suspects:note_kill('u', 'you', 'worker-2', 1, 20)
  equal(suspects:is_refused('u', 'anybody'), true)
end)

test('what is told twice is one kill', function()
  local suspects = quarantine(0)
  suspects:note_kill('u', 'me', 'worker-0 at one', 1, 0)
  suspects:note_kill('u', 'you', 'worker-0 at one', 1, 500)
  equal(#suspects:recent('u', 500), 1)
  suspects:note_kill('u', 'you', 'worker-0 at another', 1, 501)
  equal(#suspects:recent('u', 501), 2)
end)

test('kills count for a while, and what is refused is let in again', function()
  local suspects, told = quarantine(0)
  suspects:note_kill('u', 'me', 'worker-0', 1, 0)
  suspects:note_kill('u', 'you', 'worker-1', 1, 0)
  suspects:sweep(4999)
  equal(suspects:is_refused('u', 'me'), true)
  suspects:sweep(5000)
  equal(suspects:is_refused('u', 'me'), false)
  equal(suspects.entries, 0)
  equal(table.concat(told, ', '), 'suspect u, suspect u, refused u, suspect u no more, refused u no more')
end)

test('a part of a kill is less than one', function()
  local suspects = quarantine(0)
  for n = 1, 3 do suspects:note_kill('u', 'c' .. n, 'worker-' .. n, 2, 0) end
  equal(suspects:is_refused('u', 'other'), false)
  suspects:note_kill('u', 'c4', 'worker-4', 2, 0)
  equal(suspects:is_refused('u', 'other'), true)
end)

test('as many are let through as it may cost workers', function()
  local suspects = quarantine(0)
  equal(suspects:is_one_too_many('u', 'me', at_large(1), 0), false)
  equal(suspects:is_one_too_many('u', 'me', at_large(2), 0), true)
  suspects:note_kill('u', 'me', 'worker-0', 1, 0)
  equal(suspects:is_one_too_many('u', 'me', at_large(1), 0), true)
end)

test('a URL that is answered more often than it kills is fine, and nobody counts who is in', function()
  local suspects = quarantine(100)
  equal(suspects:is_one_too_many('u', 'me', function() error('counted') end, 0), false)
end)

test('only answers since the first of its kills count, and those of the seconds before it', function()
  local suspects, _, counts = quarantine(100)
  suspects:note_kill('u', 'me', 'worker-0', 1, 0)
  counts.all = 101
  equal(suspects:is_one_too_many('u', 'me', at_large(2), 0), true)
  counts.all = 102
  equal(suspects:is_one_too_many('u', 'me', at_large(2), 0), false)
  local late, _, of_late = quarantine(100)
  of_late.lately = 2
  late:note_kill('u', 'me', 'worker-0', 1, 0)
  equal(late:is_one_too_many('u', 'me', at_large(2), 0), false)
end)

test('a table that has forgotten the URL begins anew', function()
  local suspects, _, counts = quarantine(100)
  suspects:note_kill('u', 'me', 'worker-0', 1, 0)
  counts.all = 0
  equal(suspects:is_one_too_many('u', 'me', at_large(2), 0), true)
  counts.all = 2
  equal(suspects:is_one_too_many('u', 'me', at_large(2), 0), false)
end)

test('a kill counts until the window is over', function()
  local suspects = quarantine(0)
  suspects:note_kill('u', 'me', 'worker-0', 1, 0)
  equal(#suspects:recent('u', 999), 1)
  equal(#suspects:recent('u', 1000), 0)
end)

test('there are only so many entries', function()
  local suspects = quarantine(0)
  for n = 1, 20001 do suspects:note_kill('u' .. n, 'me', 'worker-0', 1, 0) end
  equal(suspects.entries, 20000)
  equal(#suspects:recent('u20001', 0), 0)
end)
