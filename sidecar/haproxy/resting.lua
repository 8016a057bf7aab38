-- The pod is of a revision that rests: it lives on for the case that its revision is asked for again, and the Service
-- no longer leads to it. Who has a connection to it from before is told to come back with a new one, and what pods of
-- other revisions have is none of its work.
local live = require('live.values')

-- Ten digits of a hash; a pod without a cluster has no such name.
local number = nil

local resting = {}

function resting.start(settings) number = tonumber(settings['revision'], 16) end

function resting.is_resting() return number ~= nil and live['resting-revision'] == number end

core.register_fetches('corelane_resting', resting.is_resting)

return resting
