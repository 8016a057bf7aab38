-- How long a peer that does not answer is left alone: for longer each time in a row. Questions that were on their way
-- together fail together and are one time: else a pod that was short of CPU for a moment, while ten were, would be left
-- alone for as long as one that is dead.
-- The first time is about as long as the question took: where a canary has one pod, all of its requests go to the other
-- side meanwhile. A dead pod costs two questions more than with a second.
local MS_MIN = 250
local MS_MAX = 30000

local ejection = {}

-- For a peer that nobody has asked yet.
function ejection.none() return { until_ms = 0, next_ms = MS_MIN } end

-- It has answered: the next time is the first one again.
function ejection.answered(state) state.next_ms = MS_MIN end

-- It has not answered, or not as it should, a question that was put then.
function ejection.failed(state, asked_ms, now)
  if asked_ms < state.until_ms then return end
  state.until_ms = now + state.next_ms
  state.next_ms = math.min(2 * state.next_ms, MS_MAX)
end

-- Whether it is to be left alone.
function ejection.is_on(state, now) return now < state.until_ms end

return ejection
