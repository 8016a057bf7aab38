-- Marks of requests that renders send to their own site (docs/adr/0059). All pods with the same key have the same ones.
-- Computes only.
local tokens = require('peers.tokens')

local marks = {}

local PERIOD_S = 60

-- A mark is of one period.
function marks.period(now_s)
  return now_s // PERIOD_S
end

local function mark(key, period, depth)
  return (tokens.pair(key, 'own-site', period, depth))
end

-- The marks to give in this period, by depth; and the backends of all that count, by mark. `keys` are texts, the newest
-- first. A mark counts for `life_s` at least: until the end of the period in which the last one of its period is so
-- old. It counts one period early, because clocks of nodes differ.
function marks.of(keys, period, depth_max, life_s)
  local past = (life_s + PERIOD_S - 1) // PERIOD_S
  local given, known = {}, {}
  for depth = 1, depth_max do
    given[depth] = mark(keys[1], period, depth)
    for _, key in ipairs(keys) do
      for at = period - past, period + 1 do known[mark(key, at, depth)] = 'own-site-' .. depth end
    end
  end
  return given, known
end

return marks
