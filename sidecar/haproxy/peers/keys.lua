-- The key that pods of one RenderService have in common (a Secret that only HAProxy's container mounts), and those
-- before it.
local now_ms = require('clock')

-- kubelet replaces the file some time after the Secret; one looks this often.
local LOOK_MS = 2000
-- Bytes of a key file that are read, and that a key has at least: 32 random ones are 44 in base64.
local FILE_BYTES_MAX = 1024
local KEY_BYTES_MIN = 32
-- The newest, and what other pods may still have in their files.
local KEYS_MAX = 3

local keys = {} -- { text, ends_at }, the newest first
local said = nil
local listeners = {}

local function read_key(path)
  local file = io.open(path, 'r')
  if not file then return nil, 'is missing' end
  local text = (file:read(FILE_BYTES_MAX) or ''):match('^%s*(.-)%s*$')
  file:close()
  if #text < KEY_BYTES_MIN then return nil, 'is shorter than ' .. KEY_BYTES_MIN .. ' bytes' end
  return text
end

-- Once for each news, and never what is in the file.
local function say(level, text)
  if said ~= text then core.log(level, 'peers: ' .. text) end
  said = text
end

local function changed()
  for _, listener in ipairs(listeners) do listener() end
end

-- A file that vanishes takes no key away: the pods that are there agree on one, and go on with it.
local function look_for_key(settings)
  local text, problem = read_key(settings['file'])
  local now = now_ms()
  if text and (not keys[1] or keys[1].text ~= text) then
    if keys[1] then keys[1].ends_at = now + settings['overlap-ms'] end
    table.insert(keys, 1, { text = text, ends_at = math.huge })
    keys[KEYS_MAX + 1] = nil
    changed()
  end
  for index = #keys, 2, -1 do
    if keys[index].ends_at <= now then
      table.remove(keys, index)
      changed()
    end
  end
  if #keys == 0 then
    say(core.warning, 'the key file ' .. problem .. '; this pod works alone until it is there')
  elseif problem then
    say(core.warning, 'the key file ' .. problem .. '; the key that was in it stays')
  else
    say(core.notice, 'the key is there')
  end
end

return {
  start = function(settings)
    core.register_task(function()
      while true do
        look_for_key(settings)
        core.msleep(LOOK_MS)
      end
    end)
  end,

  -- The keys that count, the newest first; none in a pod that has got none.
  all = function() return keys end,

  -- Calls `listener` whenever a key comes or goes.
  on_change = function(listener) listeners[#listeners + 1] = listener end,
}
