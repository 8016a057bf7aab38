-- The file that says who is on which side of a canary, beside the shares (docs/canary.md): lines `key header NAME`,
-- `key cookie NAME`, `match header|cookie|query NAME VALUE`, as the operator writes them. Computes only.
local rules = {}

-- Nine lines of the longest are less.
rules.BYTES_MAX = 8192
local MATCHES_MAX = 8
local NAME_BYTES_MAX = 128
local VALUE_BYTES_MAX = 256

local KEYS = { header = true, cookie = true }
local MATCHES = { header = true, cookie = true, query = true }

-- As long as there is no file.
function rules.none() return { matches = {} } end

local function is_name(name)
  return #name <= NAME_BYTES_MAX and not name:find("[^%w!#$%%&'*+.^_`|~-]")
end

local function read_line(line, found)
  local what, name = line:match('^key (%l+) ([^ ]+)$')
  if what then
    if not KEYS[what] or not is_name(name) then return 'has a key that is none' end
    if found.key then return 'has two keys' end
    found.key = { what = what, name = name }
    return
  end
  local value
  what, name, value = line:match('^match (%l+) ([^ ]+) ([ -~]+)$')
  if not what or not MATCHES[what] or not is_name(name) or #value > VALUE_BYTES_MAX then
    return 'has a line that is none'
  end
  if #found.matches == MATCHES_MAX then return 'has too many lines' end
  found.matches[#found.matches + 1] = { what = what, name = name, value = value }
end

-- Whole or not at all: { key = { what, name }, matches = { { what, name, value } } }; or nil and a reason.
function rules.parse(text)
  if #text >= rules.BYTES_MAX then return nil, 'is too long' end
  if text ~= '' and text:sub(-1) ~= '\n' then return nil, 'does not end with a line' end
  local found = rules.none()
  for line in text:gmatch('([^\n]*)\n') do
    local problem = line ~= '' and line:sub(1, 1) ~= '#' and read_line(line, found)
    if problem then return nil, problem end
  end
  return found
end

return rules
