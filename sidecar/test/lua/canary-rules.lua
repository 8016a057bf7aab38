local rules = require('canary.rules')

local function why(text)
  local found, reason = rules.parse(text)
  return found and 'taken' or reason
end

test('what there may be', function()
  local found = rules.parse('# comment\nkey cookie user\nmatch header X-Tester yes, of course\nmatch query a b\n\n')
  equal(found.key.what .. ' ' .. found.key.name, 'cookie user')
  equal(#found.matches, 2)
  equal(found.matches[1].what .. '|' .. found.matches[1].name .. '|' .. found.matches[1].value, 'header|X-Tester|yes, of course')
  equal(found.matches[2].what .. '|' .. found.matches[2].name .. '|' .. found.matches[2].value, 'query|a|b')
  equal(#rules.parse('').matches, 0)
  equal(rules.parse('').key, nil)
end)

test('whole or not at all', function()
  equal(why(('match header A 1\n'):rep(8) .. 'key header A\n'), 'taken')
  equal(why(('match header A 1\n'):rep(9)), 'has too many lines')
  equal(why('key header A\nkey header A\n'), 'has two keys')
  equal(why('key header A'), 'does not end with a line')
  equal(why('key query A\n'), 'has a key that is none')
  for _, line in ipairs({
    'key header', 'key header A B', 'match header A', 'match header A ', 'match path A b', 'match header A: b',
    'match header A \tb', 'match header A b\0', 'match header A b\r', ' match header A b', 'header A b', 'MATCH header A b',
    'match header A ' .. ('x'):rep(257), 'match header ' .. ('x'):rep(129) .. ' b', 'match header \xc3\xa4 b', 'match header A \xc3\xa4',
  }) do
    if why(line .. '\n') == 'taken' then error(line) end
  end
  equal(why(('#'):rep(rules.BYTES_MAX)), 'is too long')
end)
