-- Who is a peer. Pods of one RenderService have a key in common (a Secret that only HAProxy's container mounts). It never
-- crosses the wire: what does are tokens, HMAC-SHA256 over what they are for and over who shows them to whom, so that a
-- token of one direction, process or address is worth nothing in another. Loaded before peer-questions.lua. docs/adr/0014
-- tells why it is done like this. Arguments (haproxy.cfg, lua-load): key=value.

local hmac = require('openssl.hmac')
local rand = require('openssl.rand')

-- kubelet replaces the file some time after the Secret; one looks this often.
local LOOK_MS = 2000
-- Bytes of a key file that are read, and that a key has at least: 32 random ones are 44 in base64.
local FILE_BYTES_MAX = 1024
local KEY_BYTES_MIN = 32
-- The newest, and what other pods may still have in their files.
local KEYS_MAX = 3
-- Hex digits of a token: 128 bits, as long as what RFC 2104 allows to cut a SHA-256 to.
local TOKEN_DIGITS = 32

local settings =
  corelane_settings('peer-key.lua', { ... }, { 'file', 'overlap-ms' }, { file = true })

local function hex(bytes)
  return (string.rep('%02x', #bytes)):format(bytes:byte(1, -1))
end

-- 128 random bits in hex digits.
function corelane_random()
  return hex(rand.bytes(TOKEN_DIGITS // 2))
end

-- Tells this process from all others, and from those before it: what was shown to one is worth nothing at another.
corelane_identity = corelane_random()

-- Version of docs/protocol.md that this pod speaks; the entry point has it from pod.env. Part of every token: peers of another version know
-- each other as little as those with another key.
local PROTOCOL_VERSION = os.getenv('CORELANE_PROTOCOL_VERSION') or 'none'

-- Two tokens for `label` and the fields, which have no line break in them. Both follow from the key, neither from the other.
function corelane_tokens(key, label, ...)
  local digits = hex(hmac.new(key, 'sha256'):final(table.concat({ PROTOCOL_VERSION, label, ... }, '\n')))
  return digits:sub(1, TOKEN_DIGITS), digits:sub(TOKEN_DIGITS + 1)
end

-- Whether a text of a stranger is what a token, an identity and a promise look like.
function corelane_is_token(text)
  return text ~= nil and #text == TOKEN_DIGITS and not text:find('[^0-9a-f]')
end

-- In the same time wherever they differ.
function corelane_same_token(one, other)
  if not corelane_is_token(one) then return false end
  local a, b, c, d = ('<i8i8i8i8'):unpack(one)
  local e, f, g, h = ('<i8i8i8i8'):unpack(other)
  return (a ~ e) | (b ~ f) | (c ~ g) | (d ~ h) == 0
end

---- The file ----

local keys = {} -- { text, ends_at }, the newest first
local said = nil
local listeners = {}

-- The keys that count, the newest first; none in a pod that has got none.
function corelane_peer_keys()
  return keys
end

-- Calls `listener` whenever a key comes or goes.
function corelane_on_keys(listener)
  listeners[#listeners + 1] = listener
end

local function read_key()
  local file = io.open(settings['file'], 'r')
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
local function look_for_key()
  local text, problem = read_key()
  local now = corelane_now_ms()
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

core.register_task(function()
  while true do
    look_for_key()
    core.msleep(LOOK_MS)
  end
end)
