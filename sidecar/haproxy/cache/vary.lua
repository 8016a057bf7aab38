-- Compares the Vary header of a response (RFC 9110, 12.5.5) with the request headers that its render got. Computes
-- only.

-- nginx has no room for more names.
local BYTES_MAX = 128
-- Headers in the cache key, or that no request for a cached page has.
local KEYED = {}
for _, name in ipairs({ 'accept-encoding', 'authorization', 'host', 'x-forwarded-host', 'x-forwarded-proto' }) do KEYED[name] = true end
-- Headers about one request or one connection: no cached page can vary by them.
local OWN = {}
for _, name in ipairs({
  'connection', 'content-length', 'content-type', 'expect', 'forwarded', 'if-match', 'if-modified-since', 'if-none-match',
  'if-range', 'if-unmodified-since', 'range', 'te', 'traceparent', 'tracestate', 'transfer-encoding', 'upgrade',
  'x-forwarded-for', 'x-real-ip', 'x-request-id', 'x-request-start',
}) do OWN[name] = true end
-- By which nginx tells variants of a page that depends on cookies.
local PERSONAL = 'X-Corelane-Personal'

-- `words`: the names in Vary, in lower case. `asked` describes the request: `shown`, the list of headers that the
-- render got beside those in the key; `withheld[name]`, whether the request had a header that the render did not get;
-- `is_personal`, whether it had cookies that the render did not get. `keyed[name]`: whether a header is in cache.key.
-- Returns nil and a reason if the page cannot be cached. Else a table: `names`, the headers that its variants are told
-- by; `missing`, those of them that were withheld; `has_cookies`, whether Vary names Cookie.
return function(words, asked, keyed)
  local found = { names = {}, missing = {}, has_cookies = false }
  local has, bytes = {}, #PERSONAL
  local function add(name)
    if has[name] then return end
    has[name] = true
    found.names[#found.names + 1] = name
    bytes = bytes + #name + 2
  end
  -- A render may depend on every header that it got. These come first, so that pages of a route have one order.
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
