-- The file with the live settings: lines `name=number`, as the operator writes them (docs/live-settings.md). Computes
-- only.
local document = {}

local VERSION = 1
-- An ordinary one has some hundred bytes; five classes and sixteen rules of the cache make 2 kB.
document.BYTES_MAX = 16384

local DAY_MS = 86400000
-- The schema's minimum of spec.timeouts.render, and what the operator adds to it. With a lower value in the ConfigMap,
-- HAProxy would answer every request with 504.
local RENDER_MS_MIN = 100
local WORKER_MS_MIN = RENDER_MS_MIN + 1000

-- The least, the most, and what counts as long as there is no file. All must be in a file. The numbers are the schema's
-- bounds and defaults: operator/test/unit/render/live-bounds.test.ts holds them against it.
local ALWAYS = {
  ['queue-length-max'] = { 0, 10000, 100 },
  ['asks-max'] = { 1, 16, 4 },
  ['across-revisions'] = { 0, 1, 0 },
  ['shed'] = { 0, 1, 1 },
  -- 0: each worker's supervisor says, within the bounds.
  ['concurrency'] = { 0, 1000, 1 },
  ['concurrency-min'] = { 1, 1000, 1 },
  ['concurrency-max'] = { 1, 1000, 1 },
  ['render-ms'] = { RENDER_MS_MIN, DAY_MS, 30000 },
  ['worker-ms'] = { WORKER_MS_MIN, DAY_MS, 31000 },
  ['worker-after-waiting-ms'] = { WORKER_MS_MIN, DAY_MS, 51000 },
  ['drain-timeout-ms'] = { 0, DAY_MS, 310000 },
  ['stale-while-revalidate-s'] = { 0, 3600, 0 },
  ['stale-if-error-s'] = { 0, 3600, 300 },
}

-- What a pod may have beside these.
local PERHAPS = {
  -- For nginx.
  { '^per%-client$', 1, 10000 },
  { '^ttl%-r%x+%-s$', 0, 86400 },
  { '^max%-ttl%-s$', 1, 31536000 },
  { '^priority%-[%w-]+%-delay%-ms$', 0, 300000 },
  { '^priority%-[%w-]+%-length%-max$', 0, 10000 },
  { '^priority%-[%w-]+%-retry%-s$', 1, 300 },
  -- Ten hexadecimal digits.
  { '^resting%-revision$', 0, 1099511627775 },
  { '^canary%-revision$', 0, 1099511627775 },
  { '^canary%-stable$', 0, 1099511627775 },
  -- In hundredths of a percent.
  { '^canary%-share$', 0, 10000 },
  -- Seconds since 1970; 0: no end.
  { '^canary%-until%-s$', 0, 99999999999 },
  -- 0: no cookie; 2: of each page's revision, too. Without it one while there is a canary.
  { '^sticky%-cookie$', 0, 2 },
}

function document.defaults()
  local values = {}
  for name, bounds in pairs(ALWAYS) do values[name] = bounds[3] end
  return values
end

local function bounds_of(name)
  if ALWAYS[name] then return ALWAYS[name][1], ALWAYS[name][2] end
  for _, perhaps in ipairs(PERHAPS) do
    if name:match(perhaps[1]) then return perhaps[2], perhaps[3] end
  end
end

local function read_line(line, read)
  local name, text = line:match('^([%w-]+)=(%w+)$')
  if not name then return 'has a line that is not name=number' end
  if read[name] then return 'says ' .. name .. ' twice' end
  read[name] = name == 'serial' and text or text:match('^%d+$') and math.tointeger(tonumber(text))
  if not read[name] then return name .. ' is no whole number' end
end

-- Whole or not at all: the values by name, and the serial; or nil and a reason. Names that are not known are those of
-- a later operator.
function document.parse(text)
  if #text >= document.BYTES_MAX then return nil, 'is too long' end
  -- One that is being written has no end yet.
  if text:sub(-1) ~= '\n' then return nil, 'does not end with a line' end
  local read = {}
  for line in text:gmatch('([^\n]*)\n') do
    local problem = line ~= '' and line:sub(1, 1) ~= '#' and read_line(line, read)
    if problem then return nil, problem end
  end
  if not read['version'] or read['version'] > VERSION then return nil, 'is of another version' end
  if not tostring(read['serial']):match('^%x+$') then return nil, 'has no serial' end
  local values = {}
  for name, value in pairs(read) do
    local least, most = bounds_of(name)
    if least and (value < least or value > most) then return nil, name .. ' is not from ' .. least .. ' to ' .. most end
    if least then values[name] = value end
  end
  for name in pairs(ALWAYS) do
    if not values[name] then return nil, 'does not say ' .. name end
  end
  if not values['canary-revision'] ~= not values['canary-stable'] or not values['canary-revision'] ~= not values['canary-share'] then
    return nil, 'has half of a canary'
  end
  if values['concurrency-min'] > values['concurrency-max'] then return nil, 'has bounds that cross' end
  local render_ms, worker_ms = values['render-ms'], values['worker-ms']
  if render_ms > worker_ms or worker_ms > values['worker-after-waiting-ms'] or render_ms > values['drain-timeout-ms'] then
    return nil, 'has time limits that cross'
  end
  return values, read['serial']
end

return document
