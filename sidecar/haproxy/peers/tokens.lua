-- What peers show each other: HMAC-SHA256 over what it is for and over who shows it to whom, so that a token of one
-- direction, process or address is worth nothing in another. The key never crosses the wire. docs/adr/0014 tells why it
-- is done like this.

local hmac = require('openssl.hmac')
local rand = require('openssl.rand')

-- Hex digits of a token: 128 bits, as long as what RFC 2104 allows to cut a SHA-256 to.
local TOKEN_DIGITS = 32
-- Version of docs/protocol.md that this pod speaks; the entry point has it from pod.env. Part of every token: peers of
-- another version know each other as little as those with another key.
local PROTOCOL_VERSION = os.getenv('CORELANE_PROTOCOL_VERSION') or 'none'

local tokens = {}

local function hex(bytes)
  return (string.rep('%02x', #bytes)):format(bytes:byte(1, -1))
end

-- 128 random bits in hex digits.
function tokens.random()
  return hex(rand.bytes(TOKEN_DIGITS // 2))
end

-- Tells this process from all others, and from those before it: what was shown to one is worth nothing at another.
tokens.identity = tokens.random()

-- Two tokens for `label` and the fields, which have no line break in them. Both follow from the key, neither from the
-- other.
function tokens.pair(key, label, ...)
  local digits = hex(hmac.new(key, 'sha256'):final(table.concat({ PROTOCOL_VERSION, label, ... }, '\n')))
  return digits:sub(1, TOKEN_DIGITS), digits:sub(TOKEN_DIGITS + 1)
end

-- Whether a text of a stranger is what a token, an identity and the name of a reservation look like.
function tokens.is_token(text)
  return text ~= nil and #text == TOKEN_DIGITS and not text:find('[^0-9a-f]')
end

-- In the same time wherever they differ.
function tokens.same(one, other)
  if not tokens.is_token(one) then return false end
  local a, b, c, d = ('<i8i8i8i8'):unpack(one)
  local e, f, g, h = ('<i8i8i8i8'):unpack(other)
  return (a ~ e) | (b ~ f) | (c ~ g) | (d ~ h) == 0
end

return tokens
