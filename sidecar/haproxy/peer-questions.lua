-- Questions to other pods over kept connections: with HAProxy's httpclient each one has a connection of its own, which
-- costs more than the question. Loaded before pooling.lua.

-- Unused connections to one peer. More are open only while more questions are asked at once.
local KEPT_MAX = 4
-- Shorter than timeout http-keep-alive of frontend peers: the other side rarely closes first.
local UNUSED_MS_MAX = 5000
-- How often one looks for questions that have got no answer in time.
local OVERDUE_LOOK_MS = 20

-- Sockets that wait for an answer, and when they are to be given up. Not by settimeout: HAProxy 3.0.11 stops itself (BUG_ON)
-- when the time-out of a Lua socket has lapsed, https://github.com/haproxy/haproxy/issues/3442.
local give_up_ms = {}
local asking = core.queue()

core.register_task(function()
  while true do
    if next(give_up_ms) == nil then asking:pop_wait() end
    core.msleep(OVERDUE_LOOK_MS)
    local now = corelane_now_ms()
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
  local status = (socket:receive('*l') or ''):match('^HTTP/1%.1 (%d%d%d)')
  if not status then return nil end
  local length = 0
  while true do
    local line = socket:receive('*l')
    if not line then return nil end
    if line == '' then break end
    length = tonumber(line:lower():match('^content%-length: *(%d+)$')) or length
  end
  local body = length > 0 and socket:receive(length) or ''
  return body and { status = tonumber(status), body = body }
end

local function exchange(socket, peer, port, request, is_new)
  if is_new and not socket:connect(peer.address, port) then return nil end
  if socket:send(request) ~= #request then return nil end
  return read_reply(socket)
end

local function close_older_than(peer, unused_ms_max)
  while peer.kept[1] and corelane_now_ms() - peer.kept[1].unused_since > unused_ms_max do
    pcall(peer.kept[1].socket.close, peer.kept[1].socket)
    table.remove(peer.kept, 1)
  end
end

-- Closes what has been unused for long, and in a drain all: open sockets would hold a HAProxy that is to stop. To be called every
-- now and then.
function corelane_close_unused(peer)
  close_older_than(peer, corelane_draining() and 0 or UNUSED_MS_MAX)
end

-- The peer is none any more.
function corelane_forget_peer(peer)
  peer.is_gone = true
  close_older_than(peer, -1)
end

-- Asks the peer { address, kept = {} }: its reply { status, body }, or nil if it has not answered in time.
function corelane_ask_peer(peer, port, headers, answer_ms_max)
  local lines = { 'GET / HTTP/1.1', 'Host: peer' }
  for name, value in pairs(headers) do lines[#lines + 1] = name .. ': ' .. value end
  local request = table.concat(lines, '\r\n') .. '\r\n\r\n'
  local ends_ms = corelane_now_ms() + answer_ms_max - OVERDUE_LOOK_MS
  while true do
    -- The one that was used last.
    local entry = table.remove(peer.kept)
    local is_new = not entry
    local socket = entry and entry.socket or core.tcp()
    give_up_ms[socket] = ends_ms
    if asking:size() == 0 then asking:push(true) end
    local ok, reply = pcall(exchange, socket, peer, port, request, is_new)
    give_up_ms[socket] = nil
    if ok and reply then
      if #peer.kept < KEPT_MAX and not peer.is_gone then
        table.insert(peer.kept, { socket = socket, unused_since = corelane_now_ms() })
      else
        pcall(socket.close, socket)
      end
      return reply
    end
    pcall(socket.close, socket)
    -- The other side may have closed one that was kept: it has not answered, and to ask again does no harm.
    if is_new or corelane_now_ms() >= ends_ms then return nil end
  end
end
