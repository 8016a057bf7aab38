-- Questions to other pods over kept connections: with HAProxy's httpclient each one has a connection of its own, which
-- costs more than the question. Who is asked may be anybody by now, so it is asked who it is first, and an answer is
-- believed with a token, bounded, and read no longer than its question may take.
local drain = require('drain')
local keys = require('peers.keys')
local now_ms = require('clock')
local tokens = require('peers.tokens')

-- Unused connections to one peer. More are open only while more questions are asked at once.
local KEPT_MAX = 4
-- Shorter than timeout http-keep-alive of frontend peers: the other side rarely closes first.
local UNUSED_MS_MAX = 5000
-- The kernel of the other side takes a connection, whatever its pod does: later only if nobody is there.
local CONNECT_MS_MAX = 200
-- While a connection is being made a close does not end it: HAProxy would go on until the kernel gives up, two minutes
-- later, and not stop before. Its own time-out does, a moment after the close.
local CONNECT_S = 1
-- Longer than anything is open.
local NEVER_S = 86400
-- How often one looks for questions that have got no answer in time.
local OVERDUE_LOOK_MS = 20
-- An answer is a word, perhaps with a reservation. HAProxy itself bounds a line: one that does not fit into its buffer
-- never comes.
local BODY_BYTES_MAX = 64
local HEADERS_MAX = 16
-- Begins a connection (PROXY protocol 2, LOCAL): a request that is handed over shows its ticket in there.
local PROXY_HEADER = '\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00'

-- Sockets that wait for an answer, and when they are to be given up. Not by settimeout: HAProxy 3.0.11 stops itself
-- (BUG_ON) when the time-out of a Lua socket that is connected has lapsed,
-- https://github.com/haproxy/haproxy/issues/3442.
local give_up_ms = {}
local asking = core.queue()

core.register_task(function()
  while true do
    if next(give_up_ms) == nil then asking:pop_wait() end
    core.msleep(OVERDUE_LOOK_MS)
    local now = now_ms()
    for socket, at_ms in pairs(give_up_ms) do
      if now >= at_ms then
        give_up_ms[socket] = nil
        -- Wakes who waits for it: closed.
        pcall(socket.close, socket)
      end
    end
  end
end)

local function read_reply(socket)
  local reply = { status = (socket:receive('*l') or ''):match('^HTTP/1%.1 (%d%d%d)') }
  if not reply.status then return nil end
  for _ = 1, HEADERS_MAX + 1 do
    local line = socket:receive('*l')
    if not line then return nil end
    if line == '' then
      local length = tonumber(reply['content-length']) or 0
      if length > BODY_BYTES_MAX then return nil end
      reply.body = length > 0 and socket:receive(length) or ''
      return reply.body and reply
    end
    local name, value = line:match('^([%w-]+): *(.-)$')
    if name then reply[name:lower()] = value end
  end
  return nil
end

local function exchange(socket, peer, port, request, is_new, ends_ms)
  if is_new then
    socket:settimeout(CONNECT_S)
    if not socket:connect(peer.address, port) then return nil end
    socket:settimeout(NEVER_S)
    give_up_ms[socket] = ends_ms
    request = PROXY_HEADER .. request
  end
  if socket:send(request) ~= #request then return nil end
  return read_reply(socket)
end

local function close_older_than(peer, unused_ms_max)
  while peer.kept[1] and now_ms() - peer.kept[1].unused_since > unused_ms_max do
    pcall(peer.kept[1].socket.close, peer.kept[1].socket)
    table.remove(peer.kept, 1)
  end
end

-- Closes what has been unused for long, and in a drain all: open sockets would hold a HAProxy that is to stop. To be
-- called every now and then.
local function close_unused(peer)
  close_older_than(peer, drain.is_draining() and 0 or UNUSED_MS_MAX)
end

-- The peer is none any more.
local function forget(peer)
  peer.is_gone = true
  peer.known = nil
  close_older_than(peer, -1)
end

local function request_text(headers, target)
  local lines = { 'GET ' .. target .. ' HTTP/1.1', 'Host: peer', 'X-Corelane-From: ' .. tokens.identity }
  for name, value in pairs(headers) do lines[#lines + 1] = name .. ': ' .. value end
  return table.concat(lines, '\r\n') .. '\r\n\r\n'
end

-- The reply to one request, by the names of its headers; nil when there is none that is whole by then.
local function send(peer, port, headers, ends_ms, target)
  local request = request_text(headers, target or '/')
  while true do
    -- The one that was used last.
    local entry = table.remove(peer.kept)
    local is_new = not entry
    local socket = entry and entry.socket or core.tcp()
    give_up_ms[socket] = is_new and math.min(ends_ms, now_ms() + CONNECT_MS_MAX) or ends_ms
    if asking:size() == 0 then asking:push(true) end
    local ok, reply = pcall(exchange, socket, peer, port, request, is_new, ends_ms)
    give_up_ms[socket] = nil
    if ok and reply and reply.status == '200' then
      if #peer.kept < KEPT_MAX and not peer.is_gone then
        table.insert(peer.kept, { socket = socket, unused_since = now_ms() })
      else
        pcall(socket.close, socket)
      end
      return reply
    end
    pcall(socket.close, socket)
    -- The other side may have closed one that was kept: it has not answered, and to ask again does no harm.
    if is_new or now_ms() >= ends_ms then return nil end
  end
end

-- Asks the address who it is. What it gets is worth something only at this very address; what it answers proves that it
-- has the key. From then on both know which process the other one is. Whether it is a peer.
local function introduce(peer, port, ends_ms)
  local known_keys, shown = keys.all(), {}
  for _, key in ipairs(known_keys) do
    shown[#shown + 1] = tokens.pair(key.text, 'hello', tokens.identity, peer.address)
  end
  local headers = { ['X-Corelane-Ask'] = 'hello', ['X-Corelane-Token'] = table.concat(shown, ' ') }
  local reply = send(peer, port, headers, ends_ms)
  local from = reply and reply['x-corelane-from']
  if not tokens.is_token(from) then return false end
  for _, key in ipairs(known_keys) do
    local welcome = tokens.pair(key.text, 'welcome', from, tokens.identity, peer.address)
    if tokens.same(reply['x-corelane-token'], welcome) then
      peer.known = {
        identity = from,
        key = key.text,
        question = tokens.pair(key.text, 'question', tokens.identity, from),
        answer = tokens.pair(key.text, 'answer', from, tokens.identity),
      }
      peer.is_self = from == tokens.identity
      return true
    end
  end
  return false
end

local function ask_known(peer, port, headers_for, ends_ms, target)
  local known = peer.known
  local headers = headers_for(known)
  headers['X-Corelane-Token'] = known.question
  local reply = send(peer, port, headers, ends_ms, target)
  if not reply or not tokens.same(reply['x-corelane-token'], known.answer) then return nil end
  reply.known = known
  return reply
end

-- Asks the peer { address, kept = {} }: its reply { body, known, its headers }, or nil if nobody who has the key has
-- answered in time. `known` is the process that is asked, { identity, key }, from which `headers_for` makes what the
-- question has beside its token; `target` what its line names, "/" unless given. The peer is `is_self` if it is this
-- one.
local function ask(peer, port, headers_for, answer_ms_max, target)
  local ends_ms = now_ms() + answer_ms_max - OVERDUE_LOOK_MS
  local was_known = peer.known ~= nil
  if not was_known and not introduce(peer, port, ends_ms) or peer.is_self then return nil end
  local reply = ask_known(peer, port, headers_for, ends_ms, target)
  if reply then return reply end
  -- Another process may be there by now, or one that has another key: it is asked who it is, once.
  if not was_known or now_ms() >= ends_ms then return nil end
  peer.known = nil
  if not introduce(peer, port, ends_ms) or peer.is_self then return nil end
  return ask_known(peer, port, headers_for, ends_ms, target)
end

return { ask = ask, close_unused = close_unused, forget = forget }
