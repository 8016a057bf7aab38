-- Marks of requests that renders send to their own site: those that workers get, and those that count. Rules of
-- haproxy.cfg find them in two maps. docs/adr/0059 has the reasons. Loaded after peer-key.lua. Arguments (haproxy.cfg,
-- lua-load): key=number.
local keys = require('peers.keys')
local marks = require('own-site.marks')
local tokens = require('peers.tokens')

local settings = require('settings')('own-site.lua', { ... }, { 'depth', 'life-s' })

local GIVEN_MAP = '/usr/share/corelane/haproxy/own-site-marks.map'
local KNOWN_MAP = '/usr/share/corelane/haproxy/own-site.map'
-- A period begins at most this much later.
local LOOK_MS = 1000

-- Of a pod that has got no key: its marks count in itself.
local own_key = tokens.random()

local known, last_period = {}, nil

local function key_texts()
  local texts = {}
  for _, key in ipairs(keys.all()) do texts[#texts + 1] = key.text end
  return #texts > 0 and texts or { own_key }
end

local function look()
  local period = marks.period(os.time())
  if period == last_period then return end
  last_period = period
  local given, new = marks.of(key_texts(), period, settings['depth'], settings['life-s'])
  for mark, backend in pairs(new) do
    if not known[mark] then core.set_map(KNOWN_MAP, mark, backend) end
  end
  for depth, mark in ipairs(given) do core.set_map(GIVEN_MAP, tostring(depth), mark) end
  for mark in pairs(known) do
    if not new[mark] then core.del_map(KNOWN_MAP, mark) end
  end
  known = new
end

keys.on_change(function()
  last_period = nil
  look()
end)

core.register_init(look)
core.register_task(function()
  while true do
    core.msleep(LOOK_MS)
    look()
  end
end)
