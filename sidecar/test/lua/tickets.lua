-- pooling/tickets.lua
local new = require('pooling.tickets')

test('a ticket is good once', function()
  local tickets = new(1000, 10)
  tickets:add('t', { proof = 'p' }, 0)
  equal(tickets:take('t', 999).proof, 'p')
  equal(tickets:take('t', 999), nil)
end)

test('a ticket is good for its time', function()
  local tickets = new(1000, 10)
  tickets:add('t', { proof = 'p' }, 0)
  equal(tickets:take('t', 1000), nil)
end)

test('of more than are kept the oldest goes', function()
  local tickets = new(1000, 3)
  for _, ticket in ipairs({ 'a', 'b', 'c', 'd' }) do tickets:add(ticket, {}, 0) end
  equal(tickets:take('a', 1), nil)
  for _, ticket in ipairs({ 'b', 'c', 'd' }) do equal(type(tickets:take(ticket, 1)), 'table') end
end)

test('those that were used or are too old need no place', function()
  local tickets = new(1000, 2)
  tickets:add('old', {}, 0)
  tickets:add('new', {}, 900)
  tickets:add('newer', {}, 1000)
  equal(type(tickets:take('new', 1001)), 'table')
  equal(#tickets.issued, 2)
end)
