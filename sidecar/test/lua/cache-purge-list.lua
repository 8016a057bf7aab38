local list = require('cache.purge-list')

local function read(...)
  local items, wrong = list.read({ ... })
  return table.concat(items, ' ') .. (wrong and ' not ' .. wrong or '')
end

test('a list is of paths, tags, and all', function()
  equal(read('/a, tag:b ,*', '/c'), '/a tag:b * /c')
  equal(read(',, /a,/a'), '/a')
  equal(read('', (' '):rep(14000) .. ',' .. ('a'):rep(1) .. (' '):rep(14000) .. 'b'):sub(1, 6), ' not a')
end)

test('a path is written in one way', function()
  equal(read('/%61, /a?x=1, /a#x, //a, /./a, /b/../a'), '/a')
  equal(read('/a/'), '/a/')
  equal(read('/a/., /a/b/..'), '/a/')
  equal(read('/'), '/')
  equal(read('/..', '/%2e%2e/a', '/a%00'), ' not /..')
  equal(read('/a%2Cb, /%C3%B6, /\195\182, /a%25b, /a%3Fb, /a%zz'), '/a%2Cb /%C3%B6 /a%25b /a%3Fb /a%25zz')
end)

test('what is something else is named', function()
  for _, wrong in ipairs({ 'a', 'tag:', 'tag: b', '**', 'TAG:b', '/' .. ('x'):rep(8000) }) do
    equal(read('/a,' .. wrong .. ',/b'), '/a /b not ' .. wrong)
  end
end)

test('lists fit into a header', function()
  local items = {}
  for n = 1, 3000 do items[n] = '/page/' .. n end
  local lists, all = list.write(items), {}
  for _, text in ipairs(lists) do
    equal(#text <= 8010, true)
    for _, item in ipairs((list.read({ text }))) do all[#all + 1] = item end
  end
  equal(table.concat(all, ' '), table.concat(items, ' '))
  equal(#list.write({}), 0)
end)

test('what another pod says', function()
  local said = {}
  for _, change in ipairs(list.read_stamped('ab.7:/a,*,tag:x,ab.8:tag:y:z,nonsense,ab.9:nonsense,x.1:/b,ab.' .. ('9'):rep(16) .. ':/c')) do
    said[#said + 1] = (change.stamp or '-') .. ' ' .. change.ms .. ' ' .. change.item
  end
  equal(table.concat(said, '; '), 'ab.7 7 /a; - 0 *; - 0 tag:x; ab.8 8 tag:y:z')
end)

local function changed(path, ...) return table.concat(list.changed(path, 'Shop.example:8080', { ... }), ' ') end

test('a change is of its path, and of what is named below it', function()
  equal(changed('/shop', ''), '/shop')
  for _, url in ipairs({
    '/shop/1', '/shop/1?x=//..#y', '//shop.example/shop/1', 'http://SHOP.example:8080/shop/1',
    'https://shop.example/shop/1', 'http://shop.example:/shop/1', 'https://shop.example:8443/shop/1',
  }) do
    equal(changed('/shop', url), '/shop /shop/1')
    equal(changed('/shop/', url), '/shop/ /shop/1')
    equal(changed('/sh%6Fp', '', url), '/shop /shop/1')
  end
end)

test('what is elsewhere was not changed', function()
  equal(changed('/', '/victim'), '/')
  for _, url in ipairs({
    '/shop', '/z', '/shopping/1', '/', '1', '', 'shop/1', '//other.example/shop/1', 'https://shop.example.org/shop/1',
    'https://other.example?/shop/1', 'mailto:/shop/1', '/shop/../z', '/shop/%2e%2E/z', '/shop/x/../../z',
    '/z/../shop/1', '/shop//1', '/shop%2f1', '/shop/./1', 'http://shop.example//shop/1',
  }) do
    equal(changed('/shop', url), '/shop')
  end
end)

test('a path that nginx resolves to another one changes nothing', function()
  for _, path in ipairs({
    '/z/..%2Fp%2F1', '/z/..%2fp', '/z/../p', '/z/%2E./p', '/z/.%2e/p', '/./p', '//p', '/p//', '/p/.', '/p/..', '/p%2F',
  }) do
    equal(changed(path, path .. '/1', '/p/1'), '')
  end
  for _, path in ipairs({ '/a..b', '/.well-known', '/a./b', '/...', '/p%252F1' }) do equal(changed(path), path) end
end)

test('a path of more than 8,000 bytes changes nothing', function()
  equal(changed('/' .. ('x'):rep(7999)), '/' .. ('x'):rep(7999))
  equal(changed('/' .. ('x'):rep(8000)), '')
end)
