-- Fields of HTTP as RFC 9110 and 9111 have them. Computes only.
local fields = {}

local MONTHS = { jan = 1, feb = 2, mar = 3, apr = 4, may = 5, jun = 6, jul = 7, aug = 8, sep = 9, oct = 10, nov = 11, dec = 12 }
-- More than that is for ever (RFC 9111, 1.2.2).
local SECONDS_MAX = 2147483648

-- Whole seconds of digits, which may be quoted; nil if it is something else.
function fields.seconds(text)
  local digits = text and (text:match('^(%d+)$') or text:match('^"(%d+)"$'))
  if not digits then return nil end
  return #digits > 10 and SECONDS_MAX or math.min(tonumber(digits), SECONDS_MAX)
end

-- Directives in lower case with their values (true without one), of all lines. Of two alike the first counts.
function fields.directives(lines)
  local found = {}
  for _, line in ipairs(lines) do
    local rest = line
    while rest ~= '' do
      rest = rest:gsub('^[%s,]+', '')
      local name, more = rest:match('^([^%s,="]+)(.*)$')
      if not name then
        -- Nothing that could be read: up to the next comma.
        rest = rest:match('^[^,]*,(.*)$') or ''
      else
        name = name:lower()
        local value, after = more:match('^=("[^"]*")(.*)$')
        if not value then value, after = more:match('^=([^,]*)(.*)$') end
        if value then value = value:gsub('%s+$', '') else value, after = true, more end
        if found[name] == nil then found[name] = value end
        rest = after:match('^[^,]*,(.*)$') or ''
      end
    end
  end
  return found
end

-- Words of a list in lower case.
function fields.words(lines)
  local words = {}
  for _, line in ipairs(lines) do
    for word in line:gmatch('[^%s,]+') do words[#words + 1] = word:lower() end
  end
  return words
end

local function days_before(year, month, day)
  -- Days since 1970-01-01 in the Gregorian calendar (the year begins in March).
  local y = month <= 2 and year - 1 or year
  local era = y // 400
  local yoe = y - era * 400
  local doy = (153 * (month + (month > 2 and -3 or 9)) + 2) // 5 + day - 1
  return era * 146097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719468
end

-- Seconds since 1970 of a date in one of the three forms; nil if it is none.
function fields.date(text)
  if not text then return nil end
  local day, month, year, hour, min, sec = text:match('^%a+, (%d%d) (%a%a%a) (%d%d%d%d) (%d%d):(%d%d):(%d%d) GMT$')
  if not day then
    day, month, year, hour, min, sec = text:match('^%a+, (%d%d)%-(%a%a%a)%-(%d%d) (%d%d):(%d%d):(%d%d) GMT$')
    if day then year = tonumber(year) + (tonumber(year) < 70 and 2000 or 1900) end
  end
  if not day then
    month, day, hour, min, sec, year = text:match('^%a+ (%a%a%a) ([ %d]%d) (%d%d):(%d%d):(%d%d) (%d%d%d%d)$')
  end
  month = month and MONTHS[month:lower()]
  if not month then return nil end
  return days_before(tonumber(year), month, tonumber(day)) * 86400 + hour * 3600 + min * 60 + sec
end

return fields
