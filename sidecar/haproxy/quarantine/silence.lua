-- Whether all workers have been heard of late. One survey serves all who want to know.
local now_ms = require('clock')
local supervisors = require('supervisors')

-- A worker that is well is heard four times a second.
local SILENT_MS = 500
-- Between two surveys.
local SURVEY_MS = 200
local ANSWER_MS_MAX = 200

-- When all workers were last asked, and none was silent.
local quiet_at_ms, is_surveying = -math.huge, false

-- Whether the supervisor has heard nothing of its worker's event loop for a while. One that has no time to answer
-- does not know; one that is not there says nothing.
local function is_silent(index)
  local begin_ms = now_ms()
  local reply = supervisors.get(index, '/silence', ANSWER_MS_MAX)
  -- One that is starting, say, is not stuck.
  if reply then return (tonumber(reply.body) or reply.body:match('^stalled') and math.huge or 0) >= SILENT_MS end
  return now_ms() - begin_ms >= ANSWER_MS_MAX
end

return {
  survey = function()
    if is_surveying then return end
    is_surveying = true
    core.register_task(function()
      local begin_ms, silent = now_ms(), false
      for index = 0, supervisors.count - 1 do silent = silent or is_silent(index) end
      if not silent then quiet_at_ms = begin_ms end
      core.msleep(SURVEY_MS)
      is_surveying = false
    end)
  end,

  -- When they were last found to be well.
  quiet_at_ms = function() return quiet_at_ms end,
}
