-- Pods that say the same share their work: those of one revision, or of all of them but for one that rests. While there
-- is a canary each side keeps to itself, and so does each revision that people are to stay at: else a pod that is busy
-- would undo what was decided about a request.
local canary = require('canary.state')
local live = require('live.values')
local resting = require('resting')

return function(settings)
  local keeps_people = canary.is_there() or live['sticky-cookie'] == 2
  local crosses = live['across-revisions'] == 1 and not resting.is_resting() and not keeps_people
  return crosses and settings['any-revision'] or settings['revision']
end
