-- Whether there is a canary, as the live settings say, and which side this pod is on.
local live = require('live.values')
local rules = require('canary.rules')

local SETTINGS = { canary = 'canary-revision', stable = 'canary-stable' }

-- Ten digits of a hash; a pod without a cluster has no such name.
local own = nil

-- `takes_part`: whether this pod gives requests to the other side; no canary begins without it. `rules`: what the file
-- beside the settings says.
local state = { takes_part = false, rules = rules.none() }

function state.start(revision, takes_part)
  own = tonumber(revision, 16)
  state.takes_part = takes_part
end

function state.is_there() return live['canary-revision'] ~= nil end

-- In hundredths of a percent: nothing when whoever decides about it has said nothing for too long.
function state.share(now_s)
  local until_s = live['canary-until-s'] or 0
  return until_s > 0 and now_s >= until_s and 0 or live['canary-share']
end

-- Whether people have a place in a cookie: rollout.stickiness.cookie is not Off.
function state.has_cookie() return live['sticky-cookie'] ~= 0 end

-- The revision of a side, as a number.
function state.revision(side) return live[SETTINGS[side]] end

-- Of this pod; nil where it has none.
function state.own_revision() return own end

-- Of this pod; nil if its revision is neither.
function state.own_side()
  for side, name in pairs(SETTINGS) do
    if own ~= nil and live[name] == own then return side end
  end
end

return state
