-- What a response says that it depends on (Vary, RFC 9110, 12.5.5), held against what its render was shown. Computes
-- only.

-- nginx has no room for more names.
local BYTES_MAX = 128
-- A part of the key, in one form of a few; or no request that may be given a kept page has it.
local KEYED = {}
for _, name in ipairs({ 'accept-encoding', 'authorization', 'host', 'x-forwarded-host', 'x-forwarded-proto' }) do KEYED[name] = true end
-- About one request, or about the way of it: no page for others can depend on them.
local OWN = {}
for _, name in ipairs({
  'connection', 'content-length', 'content-type', 'expect', 'forwarded', 'if-match', 'if-modified-since', 'if-none-match',
  'if-range', 'if-unmodified-since', 'range', 'te', 'traceparent', 'tracestate', 'transfer-encoding', 'upgrade',
  'x-forwarded-for', 'x-real-ip', 'x-request-id', 'x-request-start',
}) do OWN[name] = true end
-- By which nginx tells variants of a page that depends on cookies.
local PERSONAL = 'X-Corelane-Personal'

-- `words`: the names, in lower case. `asked`: of the request `shown`, a list of names that the render was shown beside
-- those of the key, `withheld[name]`, those that the request had and the render was not shown, and `is_personal`,
-- whether there were cookies among these. `keyed[name]`: whether it is in cache.key. Gives nil and a reason if the page
-- is for nobody else. Else `names` that its variants are told by, `missing`, those of them that the request had and its
-- render was not shown, and `has_cookies`, whether it depends on cookies.
return function(words, asked, keyed)
  local found = { names = {}, missing = {}, has_cookies = false }
  local has, bytes = {}, #PERSONAL
  local function add(name)
    if has[name] then return end
    has[name] = true
    found.names[#found.names + 1] = name
    bytes = bytes + #name + 2
  end
  -- What it has seen it may depend on, whatever it says. First, so that pages of one route name them in one order.
  for _, name in ipairs(asked.shown) do add(name) end
  for _, word in ipairs(words) do
    local is_own = OWN[word] or word:match('^x%-corelane%-') or not word:match('^[a-z][a-z0-9_-]*$')
    if is_own then return nil, 'vary' end
    if word == 'cookie' then
      if asked.is_personal then return nil, 'cookie' end
      found.has_cookies = true
    elseif not KEYED[word] and not keyed[word] then
      add(word)
      if asked.withheld[word] then found.missing[#found.missing + 1] = word end
    end
  end
  if bytes > BYTES_MAX then return nil, 'vary' end
  return found
end
