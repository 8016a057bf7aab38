-- Whether and for how long a response may be given to others (RFC 9111), for a shared cache. Computes only. What is
-- said here nginx does: it decides nothing by itself, so the two cannot differ.
local fields = require('cache.fields')

-- Understood, and without anything that is for one request only.
local KEPT = {}
for _, status in ipairs({ 200, 203, 204, 300, 301, 302, 303, 307, 308, 400, 403, 404, 405, 410, 414, 451 }) do KEPT[status] = true end

-- The longest that a page is kept, unless a live setting says so.
local TTL_S = 60
-- Age of the response when it came: the greater of what it says and what its date says; nil if it says nonsense.
local function age_of(headers, date_s, now_s)
  local lines = headers('age')
  local said = #lines == 0 and 0 or #lines == 1 and lines[1]:match('^%d+$') and fields.seconds(lines[1])
  return said and math.max(said, date_s and now_s - date_s or 0)
end

local function lifetime_of(control, headers, date_s, now_s)
  for _, name in ipairs({ 's-maxage', 'max-age' }) do
    local value = control[name]
    if value ~= nil then return fields.seconds(value ~= true and value or nil) or 0 end
  end
  local expires = headers('expires')
  if #expires == 0 then return nil end
  local until_s = #expires == 1 and fields.date(expires[1])
  return until_s and until_s - (date_s or now_s) or 0
end

-- What the application says to proxies of its own (Surrogate-Control): the longest that it may be kept; nil if nothing.
-- What names a proxy is for that one.
local function surrogate_of(headers)
  local value = fields.directives(headers('surrogate-control'))['max-age']
  if value == nil or value ~= true and value:find(';', 1, true) then return nil end
  -- "600+60": what comes after is for when it is over.
  return fields.seconds(value ~= true and value:match('^[^+]*') or nil) or 0
end

local function is_refused(status, control, headers, settings)
  if not KEPT[status] then return 'status' end
  -- One client's request may have brought about an error: it is for all only if the application says so to caches.
  if status >= 400 and control['s-maxage'] == nil then return 'status' end
  if #headers('set-cookie') > 0 then return 'set-cookie' end
  local length = tonumber(headers('content-length')[1] or '')
  if length and length > settings['kept-bytes'] then return 'too-large' end
  -- What comes from nginx' cache it would compress all the same.
  if settings['transforms'] == 1 and control['no-transform'] ~= nil then return 'no-transform' end
  if #headers('content-range') > 0 then return 'range' end
end

-- Why a response must not be kept; nil if it may. A ttl of the user (`is_chosen`) overrides no-cache, and nothing else.
local function is_forbidden(status, control, headers, is_chosen)
  if control['private'] ~= nil then return 'private' end
  if control['no-cache'] ~= nil and not is_chosen then return 'no-cache' end
  if control['no-store'] ~= nil and not (control['must-understand'] ~= nil and KEPT[status]) then return 'no-store' end
  if fields.directives(headers('surrogate-control'))['no-store'] ~= nil then return 'no-store' end
end

local function window(control, name, default_s, is_chosen)
  if is_chosen then return default_s end
  if control['must-revalidate'] ~= nil or control['proxy-revalidate'] ~= nil then return 0 end
  local said = control[name]
  if said ~= nil and said ~= true then return fields.seconds(said) or 0 end
  -- s-maxage alone is no leave (RFC 9111, 5.2.2.10); with a bare stale-while-revalidate, as Next.js says it, it is.
  if said == nil and control['s-maxage'] ~= nil and control['stale-while-revalidate'] == nil then return 0 end
  return default_s
end

-- `headers(name)` gives the lines of a header. `ttl_s`: what the user has chosen for pages of the path, or nil. Gives
-- nil and a reason, or: until when it is fresh, how old it is, and how long after that it may be given out while it is
-- rendered anew, and where that fails.
return function(status, headers, ttl_s, settings, now_s)
  -- It is for the pages of a path. A redirect may lead to a login, and an error is about a request.
  if status ~= 200 then ttl_s = nil end
  local control = fields.directives(headers('cache-control'))
  local why = is_refused(status, control, headers, settings)
  why = why or is_forbidden(status, control, headers, ttl_s ~= nil)
  if why then return nil, why end
  local date_s = fields.date(headers('date')[1])
  local age_s = age_of(headers, date_s, now_s)
  if not age_s and not ttl_s then return nil, 'age' end
  local left_s = ttl_s
  if not ttl_s then
    local lifetime_s = lifetime_of(control, headers, date_s, now_s)
    if not lifetime_s then return nil, 'no-lifetime' end
    left_s = math.min(lifetime_s, surrogate_of(headers) or lifetime_s) - age_s
    left_s = math.min(left_s, settings['max-ttl-s'] or TTL_S)
  end
  if left_s <= 0 then return nil, 'stale' end
  return {
    until_s = now_s + math.tointeger(left_s),
    age_s = age_s or 0,
    revalidate_s = window(control, 'stale-while-revalidate', settings['stale-while-revalidate-s'], ttl_s ~= nil),
    error_s = window(control, 'stale-if-error', settings['stale-if-error-s'], ttl_s ~= nil),
  }
end
