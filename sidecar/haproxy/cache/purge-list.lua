-- Lists of what is to be purged: "/path, tag:NAME, *" (docs/cache.md). Between pods each item has a stamp, which tells
-- changes apart: the process that has seen the change, and when ("PROCESS.MS:ITEM"). Computes only.
local list = {}

-- nginx takes 8 KiB for a line, and no longer path.
local BYTES_MAX = 8000
local STAMP = '^(%x+%.(%d+)):(.+)$'
local STAMP_BYTES_MAX = 64
local MS_DIGITS_MAX = 15

-- Without the blanks around it. Not by a pattern that tries each of many blanks.
local function trimmed(text)
  local start = text:find('[^ \t]')
  return start and text:match('^.*[^ \t]', start) or ''
end

local function decoded(path)
  return (path:gsub('%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end))
end

local function encode(char) return ('%%%02X'):format(char:byte()) end

-- Without empty and dot segments; nil if these lead out of the root.
local function resolved(path)
  local segments, last = {}, nil
  for segment in path:gmatch('[^/]+') do
    last = segment
    if segment == '..' then
      if #segments == 0 then return nil end
      segments[#segments] = nil
    elseif segment ~= '.' then
      segments[#segments + 1] = segment
    end
  end
  local is_folder = path:sub(-1) == '/' or last == '.' or last == '..'
  return '/' .. table.concat(segments, '/') .. (is_folder and #segments > 0 and '/' or '')
end

-- The one way in which a path is written here, whatever a client has made of it, without a query; nil if nginx would
-- not take it. A comma ends an item, and what is not ASCII stands encoded in a header.
local function canonical(target)
  local path = resolved(decoded(target:match('^[^?#]*')))
  if not path or path:find('\0', 1, true) then return nil end
  path = path:gsub('[%%,?#]', encode):gsub('[^!-~]', encode)
  return #path <= BYTES_MAX and path or nil
end

-- A path, a tag, or "*" for all pages; nil if it is none.
local function item_of(text)
  if text:sub(1, 1) == '/' then return canonical(text) end
  return (text == '*' or #text <= BYTES_MAX and text:match('^tag:[!-~]+$')) and text or nil
end

-- The items of lines of a header, each once, and the first word that is none.
function list.read(lines)
  local items, has, wrong = {}, {}, nil
  for _, line in ipairs(lines) do
    for word in line:gmatch('[^,]+') do
      local text = trimmed(word)
      local item = item_of(text)
      if not item then
        if text ~= '' then wrong = wrong or text end
      elseif not has[item] then
        items[#items + 1], has[item] = item, true
      end
    end
  end
  return items, wrong
end

-- What another pod says: a list of { id, ms, item, text }. An item without a stamp has no id, and 0 for the time. Words
-- that are none are left out.
function list.read_stamped(text)
  local changes = {}
  for word in text:gmatch('[^,]+') do
    local id, ms, rest = word:match(STAMP)
    local item = item_of(rest or word)
    if item and (not id or #id <= STAMP_BYTES_MAX and #ms <= MS_DIGITS_MAX) then
      changes[#changes + 1] = { id = id, ms = tonumber(ms) or 0, item = item, text = word }
    end
  end
  return changes
end

-- Lists of these words, each of a length that fits into a header.
function list.write(words)
  local lists, parts, bytes = {}, {}, 0
  for _, word in ipairs(words) do
    if #parts > 0 and bytes + #word > BYTES_MAX then
      lists[#lists + 1] = table.concat(parts, ',')
      parts, bytes = {}, 0
    end
    parts[#parts + 1] = word
    bytes = bytes + #word + 1
  end
  if #parts > 0 then lists[#lists + 1] = table.concat(parts, ',') end
  return lists
end

-- The path that a URL of this host names, as an item; nil for one of another host, or for a relative one.
local function path_of(url, host)
  local rest = url:match('^%a[%w+.-]*:(//.*)$') or url
  local named, path = rest:match('^//([^/?#]*)([^?#]*)')
  if named then
    local bare = host:gsub(':%d+$', '')
    if named:lower() ~= host and named:lower():gsub(':%d+$', '') ~= bare then return nil end
  end
  path = path or rest
  return path:sub(1, 1) == '/' and canonical(path) or nil
end

-- What a successful request has changed: its own path, and what the response names in Location and Content-Location, if
-- that is below it. Another path would be a stranger's choice, where an application leads him to whatever he has named
-- (RFC 9111, 4.4, allows to look at the host alone).
function list.changed(path, host, urls)
  local own = canonical(path)
  if not own then return {} end
  -- All is below it.
  if own == '/' then return { own } end
  local items, start = { own }, own:gsub('/$', '') .. '/'
  for _, url in ipairs(urls) do
    local named = path_of(url, host:lower())
    if named and named ~= own and named:sub(1, #start) == start then items[#items + 1] = named end
  end
  return items
end

return list
