local list = require('cache.purge-list')

local function read(...)
  local items, wrong = list.read({ ... })
  return table.concat(items, ' ') .. (wrong and ' not ' .. wrong or '')
end

test('a list is of paths, tags, and all', function()
  equal(read('/a, tag:b ,*', '/c'), '/a tag:b * /c')
  equal(read(',, /a,'), '/a')
  equal(read(''), '')
end)

test('what is something else is named', function()
  for _, wrong in ipairs({ 'a', 'tag:', 'tag: b', '/a b', '**', '/a\1b', 'TAG:b', '/' .. ('x'):rep(8000) }) do
    equal(read('/a,' .. wrong .. ',/b'), '/a /b not ' .. wrong)
  end
end)

test('lists fit into a header', function()
  local items = {}
  for n = 1, 3000 do items[n] = '/page/' .. n end
  local lists = list.write(items)
  local all = {}
  for _, text in ipairs(lists) do
    equal(#text <= 8010, true)
    for _, item in ipairs((list.read({ text }))) do all[#all + 1] = item end
  end
  equal(table.concat(all, ' '), table.concat(items, ' '))
  equal(#list.write({}), 0)
end)

local function changed(path, ...) return table.concat(list.changed(path, 'Shop.example:8080', { ... }), ' ') end

test('a change is of its path, and of what is named below it', function()
  equal(changed('/shop', ''), '/shop')
  for _, url in ipairs({
    '/shop/1', '/shop/1?x#y', '//shop.example/shop/1', 'http://SHOP.example:8080/shop/1', 'https://shop.example/shop/1',
  }) do
    equal(changed('/shop', url), '/shop /shop/1')
    equal(changed('/shop/', url), '/shop/ /shop/1')
    equal(changed('/sh%6Fp', '', url), '/sh%6Fp /shop/1')
  end
end)

test('what is elsewhere was not changed', function()
  for _, url in ipairs({
    '/z', '/shopping/1', '/', '1', '', 'shop/1', '//other.example/shop/1', 'https://shop.example.org/shop/1',
    'https://other.example?/shop/1', 'mailto:/shop/1', '/shop/../z', '/shop/%2e%2E/z', '/shop/x/..', '/shop/./1',
  }) do
    equal(changed('/shop', url), '/shop')
  end
end)

test('what a header cannot have stands encoded', function()
  equal(changed('/a,b', '/a,b/\195\182 '), '/a%2Cb /a%2Cb/%C3%B6%20')
  equal(changed('/a%2C%zz', ''), '/a%2C%zz')
  equal(changed('/' .. (','):rep(3000), ''), '')
end)
