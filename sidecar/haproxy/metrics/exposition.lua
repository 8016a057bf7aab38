-- Prometheus' text format, as somebody wrote it who is not trusted. Prometheus throws away a page with one line that it
-- cannot read; so a line that is not as it should be is left out here. Computes only.
local exposition = {}

local LINE_BYTES_MAX = 1024
local LABEL_BYTES_MAX = 256
local VALUE_BYTES_MAX = 32
local HELP_BYTES_MAX = 200
-- Of one writer.
local SAMPLES_MAX = 2000

local SUFFIXES = {
  counter = { [''] = true },
  gauge = { [''] = true },
  histogram = { _bucket = true, _sum = true, _count = true },
}

-- Where the value of a label ends, which begins at `at`: behind its quote.
local function end_of_value(line, at)
  local from = at
  while true do
    local stop = line:find('["\\]', at)
    if not stop or stop - from > LABEL_BYTES_MAX then return nil end
    if line:sub(stop, stop) == '"' then return stop + 1 end
    if not line:find('^["\\n]', stop + 1) then return nil end
    at = stop + 2
  end
end

-- Where the labels end, which begin at `at`: at their brace. Twice the same one costs the page as well, and `__name__`
-- is the name of the sample.
local function end_of_labels(line, at)
  local seen = { __name__ = true }
  while true do
    local name, value = line:match('^([%a_][%w_]*)="()', at)
    local stop = value and not seen[name] and end_of_value(line, value)
    local sign = stop and line:sub(stop, stop)
    if sign == '}' then return stop end
    seen[name or ''] = true
    if sign ~= ',' then return nil end
    at = stop + 1
  end
end

local function is_number(text)
  if #text > VALUE_BYTES_MAX or not text:find('^[%d.eE+-]+$') then return false end
  local value = tonumber(text)
  return value ~= nil and value - value == 0
end

-- Name, labels (with their braces, or '') and value of a line with a sample; nil of any other.
local function sample_of(line)
  if #line > LINE_BYTES_MAX or line:find('%c') or not utf8.len(line) then return nil end
  local name, rest = line:match('^([%a_][%w_]*)()')
  if not name then return nil end
  local stop = rest - 1
  if line:sub(rest, rest) == '{' then
    stop = end_of_labels(line, rest + 1)
    if not stop then return nil end
  end
  local value = line:match('^ (%S+)$', stop + 1)
  if not value or not is_number(value) then return nil end
  return name, line:sub(rest, stop), value
end

-- Calls `take(name, labels, value, line)` for each sample whose labels begin with `own` ('' for any), and
-- `describe(keyword, name, text)` for each description, if it is given.
function exposition.read(text, own, take, describe)
  local left = SAMPLES_MAX
  local head = own == '' and '' or '{' .. own
  for line in text:gmatch('[^\n]+') do
    if line:sub(1, 1) == '#' then
      local keyword, name, rest = line:match('^# (%u+) ([%a_][%w_]*) ([ -~]+)$')
      if describe and keyword then describe(keyword, name, rest) end
    elseif left > 0 then
      local name, labels, value = sample_of(line)
      local is_own = name and labels:sub(1, #head) == head and (own == '' or labels:find('^[,}]', #head + 1))
      if is_own then
        left = left - 1
        take(name, labels, value, line)
      end
    end
  end
end

-- What becomes a page: families in the order in which they came, each with the samples of all who have some.
function exposition.new_page()
  local families, order = {}, {}
  local page = {}

  local function family_of(name, help)
    local family = { name = name, help = help, lines = {}, seen = {} }
    families[name] = family
    order[#order + 1] = family
    return family
  end

  function page.describe(name, type, help)
    local family = families[name] or family_of(name, help)
    family.type = family.type or type
    return family
  end

  function page.sample(name, labels, value)
    local lines = families[name].lines
    lines[#lines + 1] = name .. labels .. ' ' .. value
  end

  -- All families of which `accepts(name)` says so; of these all samples, or those that `knows(family, labels)` lets in.
  function page.add(text, own, accepts, knows)
    local current
    local function describe(keyword, name, rest)
      if keyword == 'HELP' then
        local is_good = accepts(name) and #rest <= HELP_BYTES_MAX and not rest:find('\\')
        current = is_good and (families[name] or family_of(name, rest)) or nil
      elseif keyword == 'TYPE' and current and current.name == name and SUFFIXES[rest] then
        current.type = current.type or rest
      end
    end
    exposition.read(text, own, function(name, labels, _value, line)
      if not current or not current.type then return end
      local is_of_family = name:sub(1, #current.name) == current.name
        and SUFFIXES[current.type][name:sub(#current.name + 1)]
      local series = name .. labels
      if not is_of_family or current.seen[series] then return end
      if knows and not knows(current.name, labels) then return end
      current.seen[series] = true
      current.lines[#current.lines + 1] = line
    end, describe)
  end

  function page.text()
    local parts = {}
    for _, family in ipairs(order) do
      if family.type and #family.lines > 0 then
        parts[#parts + 1] = '# HELP ' .. family.name .. ' ' .. family.help
        parts[#parts + 1] = '# TYPE ' .. family.name .. ' ' .. family.type
        parts[#parts + 1] = table.concat(family.lines, '\n')
      end
    end
    return table.concat(parts, '\n') .. '\n'
  end

  return page
end

return exposition
