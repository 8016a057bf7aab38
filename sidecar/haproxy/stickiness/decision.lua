-- Which revision a request is to stay at. Computes only.
local ids = require('stickiness.ids')

local decision = {}

-- A revision that gets no request at all: a canary that has not begun, or that was aborted.
local function is_stopped(revision, canary) return canary ~= nil and revision == canary.revision and canary.share == 0 end

-- The revision, and by what ("id", "cookie"); nil if nothing is said, or nobody of it lives.
-- `request`: what `ids.asked` wants, and `cookie`, `is_navigation`; `world`: `named(id)`, `lives(revision)`,
-- `has_cookie`, and `canary` { revision, stable, share } while there is one.
function decision.of(request, world)
  local id = ids.asked(request)
  local named = id and world.named(id)
  if named and not is_stopped(named, world.canary) then return named, 'id' end
  local kept = world.has_cookie and ids.revision(request.cookie)
  if not kept or not world.lives(kept) or is_stopped(kept, world.canary) then return nil end
  -- A page is of the side that the person's place is on; what belongs to a page, of the revision of that page.
  local canary = world.canary
  if canary and request.is_navigation and (kept == canary.revision or kept == canary.stable) then return nil end
  return kept, 'cookie'
end

return decision
