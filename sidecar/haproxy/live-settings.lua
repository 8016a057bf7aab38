-- Settings that change while the pod runs. They stand in a file of a ConfigMap, which kubelet replaces in one step; so
-- there is nothing to be sent to this process, and one that begins has them before it accepts a request. Rules of
-- haproxy.cfg find them in a map, Lua in live/values.lua. Loaded first. Arguments (haproxy.cfg, lua-load): key=value.
local document = require('live.document')
local values = require('live.values')

local MAP = '/usr/share/corelane/haproxy/live.map'
-- A change is seen at most this much later.
local LOOK_MS = 250

-- NAME-max: more than that there is no room for in this pod, whatever a file says that is for later ones, too.
local settings = require('settings')('live-settings.lua', { ... }, {
  'file', 'worker-ms-max', 'worker-after-waiting-ms-max', 'drain-timeout-ms-max',
}, { file = true })

-- What counts now; `problem`: why what is in the file does not.
local serial, problem = nil, nil
local said = nil

local function say(level, text)
  if said ~= text then core.log(level, 'live settings: ' .. text) end
  said = text
end

local function read()
  local file = io.open(settings['file'], 'r')
  if not file then return nil, 'is missing' end
  local text = file:read(document.BYTES_MAX) or ''
  file:close()
  return text
end

local function take(new_values, new_serial)
  for name in pairs(values) do
    if new_values[name] == nil then values[name] = nil end
  end
  for name, value in pairs(new_values) do
    local most = settings[name .. '-max']
    values[name] = most and math.min(value, most) or value
    core.set_map(MAP, name, tostring(values[name]))
  end
  serial = new_serial
end

local last_text = nil

-- A file that is missing or wrong changes nothing.
local function look()
  local text, why = read()
  if text and text == last_text then return end
  last_text = text
  local new_values, more = nil, why
  if text then new_values, more = document.parse(text) end
  if not new_values then
    problem = more
    return say(core.warning, 'the file ' .. problem .. '; ' .. (serial and serial .. ' stays' or 'defaults count'))
  end
  problem = nil
  if more == serial then return end
  take(new_values, more)
  say(core.notice, serial .. ' counts')
end

core.register_init(function()
  take(document.defaults(), nil)
  look()
end)

core.register_task(function()
  while true do
    core.msleep(LOOK_MS)
    look()
  end
end)

-- For the operator: which settings count in this pod, and what is wrong with others.
core.register_service('live', 'http', function(applet)
  local text = 'serial=' .. (serial or 'none') .. '\n' .. (problem and 'problem=' .. problem .. '\n' or '')
  applet:set_status(200)
  applet:add_header('content-type', 'text/plain')
  applet:add_header('cache-control', 'no-store')
  applet:add_header('content-length', #text)
  applet:start_response()
  applet:send(text)
end)
