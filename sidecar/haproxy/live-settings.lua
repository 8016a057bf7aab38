-- Settings that change while the pod runs. They stand in a file of a ConfigMap, which kubelet replaces in one step; so
-- there is nothing to be sent to this process, and one that begins has them before it accepts a request. Rules of
-- haproxy.cfg find them in a map, Lua in live/values.lua. Loaded first. Arguments (haproxy.cfg, lua-load): key=value.
local canary = require('canary.state')
local document = require('live.document')
local rules = require('canary.rules')
local send_text = require('text-page')
local values = require('live.values')

local MAP = '/usr/share/corelane/haproxy/live.map'
-- A change is seen at most this much later.
local LOOK_MS = 250

-- NAME-max: more than that there is no room for in this pod, whatever a file says that is for later ones, too.
local settings = require('settings')('live-settings.lua', { ... }, {
  'file', 'canary-file', 'worker-ms-max', 'worker-after-waiting-ms-max', 'drain-timeout-ms-max',
}, { file = true, ['canary-file'] = true })

-- What counts now; `problem`: why what is in the file does not.
local serial, problem = nil, nil
local said = nil

local function say(level, text)
  if said ~= text then core.log(level, 'live settings: ' .. text) end
  said = text
end

local function read(name, bytes_max)
  local file = io.open(settings[name], 'r')
  if not file then return nil end
  local text = file:read(bytes_max) or ''
  file:close()
  return text
end

-- Both files as they were at one time, or false: kubelet replaces all in one step, and other rules come with another
-- serial.
local function read_both()
  local text = read('file', document.BYTES_MAX)
  local of_canary = read('canary-file', rules.BYTES_MAX) or ''
  if read('file', document.BYTES_MAX) ~= text then return false end
  return text, of_canary
end

local function take(new_values, new_serial)
  for name in pairs(values) do
    if new_values[name] == nil then
      values[name] = nil
      core.del_map(MAP, name)
    end
  end
  for name, value in pairs(new_values) do
    local most = settings[name .. '-max']
    values[name] = most and math.min(value, most) or value
    core.set_map(MAP, name, tostring(values[name]))
  end
  serial = new_serial
end

local last_text, last_of_canary = nil, nil

-- The settings, their serial and the rules of a canary; or nil, and what is wrong.
local function parse(text, of_canary)
  if not text then return nil, 'is missing' end
  local new_values, new_serial = document.parse(text)
  if not new_values then return nil, new_serial end
  local new_rules, problem_of_canary = rules.parse(of_canary)
  if not new_rules then return nil, 'of the canary ' .. problem_of_canary end
  return new_values, new_serial, new_rules
end

-- A file that is missing or wrong changes nothing.
local function look()
  local text, of_canary = read_both()
  if text == false or text and text == last_text and of_canary == last_of_canary then return end
  last_text, last_of_canary = text, of_canary
  local new_values, more, new_rules = parse(text, of_canary)
  if not new_values then
    problem = more
    return say(core.warning, 'the file ' .. problem .. '; ' .. (serial and serial .. ' stays' or 'defaults count'))
  end
  problem = nil
  local is_new = more ~= serial
  -- What is not in the serial may have changed: until when a share counts.
  take(new_values, more)
  canary.rules = new_rules
  if is_new then say(core.notice, serial .. ' counts') end
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
  local lines = { 'serial=' .. (serial or 'none') }
  if problem then lines[#lines + 1] = 'problem=' .. problem end
  -- It gives requests to the side that they are on.
  if canary.takes_part then lines[#lines + 1] = 'canary=1' end
  -- And to the revision that they name.
  if canary.takes_part then lines[#lines + 1] = 'sticky=1' end
  send_text(applet, table.concat(lines, '\n') .. '\n')
end)
