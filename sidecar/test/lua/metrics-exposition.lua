local exposition = require('metrics.exposition')

local function page_of(text, own, accepts)
  local page = exposition.new_page()
  page.add(text, own or 'worker="0"', accepts or function(name) return name:find('^corelane_worker_') end)
  return page.text()
end

local HEAD = '# HELP corelane_worker_a Something.\n# TYPE corelane_worker_a gauge\n'
local function lines_of(...) return page_of(HEAD .. table.concat({ ... }, '\n') .. '\n') end

test('what is as it should be stays as it is', function()
  local text = HEAD
    .. 'corelane_worker_a{worker="0"} 1\ncorelane_worker_a{worker="0",in="a \\"b\\" {c} \\\\ größe:1"} -2.5e+3\n'
    .. '# HELP corelane_worker_b Seconds.\n# TYPE corelane_worker_b histogram\n'
    .. 'corelane_worker_b_bucket{worker="0",le="+Inf"} 3\ncorelane_worker_b_sum{worker="0"} 0.5\ncorelane_worker_b_count{worker="0"} 3\n'
  equal(page_of(text), text)
end)

test('a line that Prometheus could not read is left out, and so is one of somebody else', function()
  local good = 'corelane_worker_a{worker="0"} 1'
  for _, bad in ipairs({
    'corelane_worker_a{worker="0",b="} 1',
    'corelane_worker_a{worker="0",b="\\x"} 1',
    'corelane_worker_a{worker="0",b="c"d="e"} 1',
    'corelane_worker_a{worker="0",b="c"',
    'corelane_worker_a{worker="0",b="\xff"} 1',
    'corelane_worker_a{worker="0",b="c\r"} 1',
    'corelane_worker_a{worker="0",b="' .. ('c'):rep(257) .. '"} 1',
    'corelane_worker_a{worker="0",b="c"} NaN',
    'corelane_worker_a{worker="0",b="c"} +Inf',
    'corelane_worker_a{worker="0",b="c"} 1e999',
    'corelane_worker_a{worker="0",b="c"} 0x10',
    'corelane_worker_a{worker="0",b="c"} 1 2',
    'corelane_worker_a{worker="0",b="c"}',
    'corelane_worker_a{worker="1"} 1',
    'corelane_worker_a{worker="00"} 1',
    'corelane_worker_a{a="b",worker="0"} 1',
    'corelane_worker_a 1',
    'corelane_worker_a{worker="0",worker="1"} 1',
    'corelane_worker_a{worker="0",b="c",b="c"} 1',
    'corelane_worker_a{worker="0",__name__="up"} 1',
    'corelane_worker_a{worker="0",b="\xed\xa0\x80"} 1',
    'corelane_worker_a{worker="0",b="c"} ' .. ('9'):rep(400),
    'corelane_worker_a{worker="0",b="c"} 1e',
    'corelane_worker_a{worker="0",b="c"} 1-1',
    'corelane_worker_z{worker="0"} 1',
    'corelane_worker_a_sum{worker="0"} 1',
    'up{worker="0"} 1',
  }) do
    equal(lines_of(good, bad), HEAD .. good .. '\n')
  end
end)

test('a series is there once, and a family without samples not at all', function()
  equal(lines_of('corelane_worker_a{worker="0"} 1', 'corelane_worker_a{worker="0"} 2'), HEAD .. 'corelane_worker_a{worker="0"} 1\n')
  equal(lines_of(), '\n')
end)

test('a family has one type, which Prometheus knows', function()
  local sample = 'corelane_worker_a{worker="0"} 1\n'
  equal(page_of('# HELP corelane_worker_a Something.\n# TYPE corelane_worker_a many\n' .. sample), '\n')
  equal(page_of('# HELP corelane_worker_a \\\n# TYPE corelane_worker_a gauge\n' .. sample), '\n')
  equal(page_of('# HELP up Something.\n# TYPE up gauge\nup{worker="0"} 1\n'), '\n')
  equal(page_of(HEAD .. '# TYPE corelane_worker_a histogram\n' .. sample), HEAD .. sample)
end)

test('one writer has so many series, whatever he writes', function()
  local many = {}
  for i = 1, 3000 do many[i] = 'corelane_worker_a{worker="0",n="' .. i .. '"} 1' end
  local _, count = lines_of(table.unpack(many)):gsub('\ncorelane_worker_a{', '')
  equal(count, 2000)
end)
