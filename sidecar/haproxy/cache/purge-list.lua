-- Parses and writes lists of items to purge: "/path, tag:NAME, *" (docs/cache.md). Between pods each item has a stamp,
-- "PROCESS.MS:ITEM": the process that saw the change, and the time. A stamp identifies a change. Computes only.
local list = {}

-- A list is one header line, and nginx accepts 8 KiB with the smallest buffering.maxHeaderSize. A longer path is no
-- item.
local BYTES_MAX = 8000
local STAMP = '^(%x+%.(%d+)):(.+)$'
local STAMP_BYTES_MAX = 64
local MS_DIGITS_MAX = 15

-- Removes blanks at both ends. A pattern such as '^%s*(.-)%s*$' takes quadratic time on many blanks.
local function trimmed(text)
  local start = text:find('[^ \t]')
  return start and text:match('^.*[^ \t]', start) or ''
end

local function decoded(path)
  return (path:gsub('%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end))
end

local function encode(char) return ('%%%02X'):format(char:byte()) end

-- Removes empty and dot segments from a path. Returns nil if ".." leads above the root.
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

-- Normalizes the path of a request target as nginx does, so that all spellings of a path are one item, and encodes it
-- for a header. Returns nil if nginx would refuse the target, or if the path is too long.
local function canonical(target)
  local path = resolved(decoded(target:match('^[^?#]*')))
  if not path or path:find('\0', 1, true) then return nil end
  path = path:gsub('[%%,?#]', encode):gsub('[^!-~]', encode)
  return #path <= BYTES_MAX and path or nil
end

-- Parses one item. Returns nil if it is neither a path, nor a tag, nor "*".
local function item_of(text)
  if text:sub(1, 1) == '/' then return canonical(text) end
  return (text == '*' or #text <= BYTES_MAX and text:match('^tag:[!-~]+$')) and text or nil
end

-- Parses the lines of a header. Returns the items, each once, and the first word that is no item.
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

-- Parses a list of another pod: { stamp, ms, item, entry } for each entry. `stamp` is nil, and `ms` 0, if the entry has
-- no stamp. Skips invalid entries.
function list.read_stamped(text)
  local changes = {}
  for word in text:gmatch('[^,]+') do
    local stamp, ms, rest = word:match(STAMP)
    local item = item_of(rest or word)
    if item and (not stamp or #stamp <= STAMP_BYTES_MAX and #ms <= MS_DIGITS_MAX) then
      changes[#changes + 1] = { stamp = stamp, ms = tonumber(ms) or 0, item = item, entry = word }
    end
  end
  return changes
end

-- Joins entries into lists that fit into a header each.
function list.write(entries)
  local lists, parts, bytes = {}, {}, 0
  for _, entry in ipairs(entries) do
    if #parts > 0 and bytes + #entry > BYTES_MAX then
      lists[#lists + 1] = table.concat(parts, ',')
      parts, bytes = {}, 0
    end
    parts[#parts + 1] = entry
    bytes = bytes + #entry + 1
  end
  if #parts > 0 then lists[#lists + 1] = table.concat(parts, ',') end
  return lists
end

-- Whether a path has no spelling that nginx resolves to another path: "..", ".", "//", "%2F", "%2E". Most applications
-- do not resolve these, so such a request does not change the page that nginx has at the path.
local function is_plain(path)
  return not (path:find('//', 1, true) or path:find('%%2[eEfF]') or (path .. '/'):find('/%.%.?/'))
end

-- Returns the path of a URL as an item; nil if the URL is relative, of another host, or not plain.
local function path_of(url, host)
  local rest = url:match('^%a[%w+.-]*:(//.*)$') or url
  local named, path = rest:match('^//([^/?#]*)([^?#]*)')
  if named and named:lower():gsub(':%d*$', '') ~= host:gsub(':%d*$', '') then return nil end
  path = path or rest:match('^[^?#]*')
  return path:sub(1, 1) == '/' and is_plain(path) and canonical(path) or nil
end

-- Returns the paths that a successful request changed: its own path, and the paths below it that Location and
-- Content-Location (`urls`) name. RFC 9111, 4.4, allows every path of the host. But an application may redirect to a
-- URL that its client chose, and then any client could purge any page. Returns nothing if the path is not plain.
function list.changed(path, host, urls)
  local own = is_plain(path) and canonical(path)
  if not own then return {} end
  -- Every path is below "/".
  if own == '/' then return { own } end
  local items, start = { own }, own:gsub('/$', '') .. '/'
  for _, url in ipairs(urls) do
    local named = path_of(url, host:lower())
    if named and named ~= own and named:sub(1, #start) == start then items[#items + 1] = named end
  end
  return items
end

return list
