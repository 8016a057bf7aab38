-- Names that a client gives for a revision, and those that are none. Computes only.
local ids = {}

local BYTES_MAX = 64

-- What may be the id of a deployment; else nil.
function ids.valid(text)
  if text and #text <= BYTES_MAX and text:find('^[%w._-]+$') then return text end
end

-- The id that a request names, by header or query; nil if there is none. `request`: { header, headers (how many lines
-- of it there are), query }. Who sends several headers has not been led by one page.
function ids.asked(request)
  if request.headers > 1 then return nil end
  if request.headers == 1 then return ids.valid(request.header) end
  return ids.valid(request.query)
end

-- The number of a revision, as a cookie has it: ten digits.
function ids.revision(text)
  if text and #text == 10 and text:find('^[0-9a-f]+$') then return tonumber(text, 16) end
end

return ids
