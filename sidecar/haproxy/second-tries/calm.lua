-- Holds second tries while workers die.
local now_ms = require('clock')

-- Workers that die together (a signal to all, no memory) do so within some 0.1 s. A second try that meets the next of
-- them is lost, so it waits until none has died for so long, but not for one that dies again and again.
local CALM_MS = 100
local CALM_WAIT_MS_MAX = 1000
local CALM_LOOK_MS = 10

local calm_at_ms = 0
local is_watching = false

local function deaths()
  local count = 0
  for _, server in pairs(core.backends['workers'].servers) do count = count + (server:get_stats().chkdown or 0) end
  return count
end

-- One for all that wait: figures of servers are dear.
local function watch_deaths()
  local before = deaths()
  while now_ms() < calm_at_ms do
    core.msleep(CALM_LOOK_MS)
    local now = deaths()
    if now ~= before then calm_at_ms = now_ms() + CALM_MS end
    before = now
  end
  is_watching = false
end

-- Holds the second try of a request. That it comes tells of a death, which HAProxy may see later.
core.register_action('wait_until_calm', { 'http-req' }, function()
  local begin_ms = now_ms()
  calm_at_ms = begin_ms + CALM_MS
  if not is_watching then
    is_watching = true
    core.register_task(watch_deaths)
  end
  while now_ms() < calm_at_ms and now_ms() - begin_ms < CALM_WAIT_MS_MAX do core.msleep(CALM_LOOK_MS) end
end)
