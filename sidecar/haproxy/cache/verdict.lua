-- What a home says of its page (docs/protocol.md). It has the key, and may be wrong all the same: what it says is
-- bounded here. Computes only.
local fields = require('cache.fields')

-- Further ahead nobody looks, whatever max-age says.
local LIFETIME_S_MAX = 366 * 86400
-- Its reason goes to clients.
local WHY_MAX = 16

-- `headers(name)` gives the lines of a header. Nil: there is no page, and nobody is to blame. 'nonsense': no home says
-- that. 'alone', and why: it is for one client only. Else: until when it is fresh, how long after that it may be given
-- out while it is rendered anew, and where that fails, and what its clients are told in Vary.
return function(status, headers, now_s)
  if status >= 500 then return nil end
  local function one(name)
    local lines = headers(name)
    return #lines == 1 and lines[1] or nil
  end
  local why = one('x-corelane-alone')
  if why then return 'alone', #why <= WHY_MAX and why:match('^[a-z-]+$') or 'home' end
  local expires = one('x-corelane-expires')
  if expires == '0' then return 'alone', 'home' end
  -- Its nginx has refused the request: it is full, or judges by what this pod has taken away.
  if #headers('x-corelane-expires') == 0 and status >= 400 then return nil end
  local digits = expires and expires:match('^@(%d+)$')
  if not digits or #digits > 12 then return 'nonsense' end
  if #headers('set-cookie') > 0 then return 'nonsense' end
  for _, word in ipairs(fields.words(headers('vary'))) do
    if word == '*' then return 'nonsense' end
  end
  local until_s = math.min(tonumber(digits), now_s + LIFETIME_S_MAX)
  -- Given out after its end because there is none: this pod may have a better one.
  if until_s < now_s then return nil end
  local revalidate, error_s = (one('x-corelane-stale') or ''):match('^(%d+) (%d+)$')
  local age = one('age')
  return {
    until_s = until_s,
    age_s = age and age:match('^%d+$') and fields.seconds(age) or 0,
    revalidate_s = fields.seconds(revalidate) or 0,
    error_s = fields.seconds(error_s) or 0,
    vary = (one('x-corelane-vary') or ''):match('^[%w, _-]+$'),
  }
end
