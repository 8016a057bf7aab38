-- Lists of what is to be purged: "/path, tag:NAME, *" (docs/cache.md). Computes only.
local list = {}

-- nginx takes 8 KiB for a line, and no longer path.
local BYTES_MAX = 8000

-- Whether it is a path, a tag, or "*" for all pages.
local function is_item(text)
  return #text <= BYTES_MAX and (text == '*' or text:match('^/[!-~]*$') or text:match('^tag:[!-~]+$')) ~= nil
end

-- The items of lines of a header, each once, and the first word that is none.
function list.read(lines)
  local items, has, wrong = {}, {}, nil
  for _, line in ipairs(lines) do
    for word in line:gmatch('[^,]+') do
      -- Without the blanks around it; not by a pattern that tries each of many blanks.
      local text = word:match('^[ \t]*(.*[^ \t])') or ''
      if not is_item(text) then
        if text ~= '' then wrong = wrong or text end
      elseif not has[text] then
        items[#items + 1], has[text] = text, true
      end
    end
  end
  return items, wrong
end

-- Lists of these items, each of a length that fits into a header.
function list.write(items)
  local lists, parts, bytes = {}, {}, 0
  for _, item in ipairs(items) do
    if #parts > 0 and bytes + #item > BYTES_MAX then
      lists[#lists + 1] = table.concat(parts, ',')
      parts, bytes = {}, 0
    end
    parts[#parts + 1] = item
    bytes = bytes + #item + 1
  end
  if #parts > 0 then lists[#lists + 1] = table.concat(parts, ',') end
  return lists
end

local function decoded(path)
  return (path:gsub('%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end))
end

-- As an item has it: a comma ends an item, and what is not ASCII stands encoded in a header.
local function encoded(path)
  return (path:gsub('[^!-+--~]', function(char) return ('%%%02X'):format(char:byte()) end))
end

-- The path that a URL of this host names; nil for one of another host, or for a relative one.
local function path_of(url, host)
  local rest = url:match('^%a[%w+.-]*:(//.*)$') or url
  local named, path = rest:match('^//([^/?#]*)([^?#]*)')
  if named then
    local bare = host:gsub(':%d+$', '')
    if named:lower() ~= host and named:lower():gsub(':%d+$', '') ~= bare then return nil end
    return path
  end
  return rest:match('^(/[^?#]*)')
end

-- Whether a path is below another one. One with dot segments could lead out of it.
local function is_below(path, parent)
  local clean = decoded(path)
  local start = decoded(parent):gsub('/$', '') .. '/'
  return clean:sub(1, #start) == start and not clean:find('/%.%.?/') and not clean:find('/%.%.?$')
end

-- What a successful request has changed: its own path, and what the response names in Location and Content-Location, if
-- that is below it. Another path would be a stranger's choice, where an application leads him to whatever he has named
-- (RFC 9111, 4.4, allows to look at the host alone).
function list.changed(path, host, urls)
  local own, items = encoded(path), {}
  if is_item(own) then items[1] = own end
  for _, url in ipairs(urls) do
    local named = path_of(url, host:lower())
    local item = named and is_below(named, path) and encoded(named)
    if item and is_item(item) then items[#items + 1] = item end
  end
  return items
end

return list
