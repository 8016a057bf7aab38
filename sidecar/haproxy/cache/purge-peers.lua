-- Sends purges to the other pods, and relays purges in fleets whose pods do not know all others
-- (docs/adr/0055-purges-reach-the-fleet.md).
local drain = require('drain')
local new_batch = require('cache.purge-batch')
local new_log = require('cache.purge-log')
local new_recent = require('recent')
local now_ms = require('clock')
local some = require('pooling.some')

-- The pod collects purges for so long before it sends them, so that one question to a peer has many purges.
local SEND_MS = 100
-- The pod renders a page by itself if its home lacks more lists than this.
local CATCH_UP_MAX = 64
-- A page waits so often, for so long, for another coroutine that sends the purges to its home.
local WAITS_MAX = 50
local WAIT_MS = 5
-- Offsets outlive the peer's entry in DNS, because a pod that is not ready disappears from DNS and keeps its cache.
local OFFSETS_MAX, OFFSET_MS = 1024, 86400000
-- A relay goes to so many peers. Older purges are not relayed: it must be well below STAMP_MS (purging.lua), because a
-- pod that has forgotten the stamp of a purge would relay the purge again.
local RELAY_PEERS = 8
local RELAY_MS = 60000

local purge_peers = {}

-- The peers, as pooling.lua has them; nil if pods do not know each other.
local peers
-- Purges of this pod that are not in the log yet, and purges of other pods to relay.
local outgoing, relayed = new_batch(), new_batch()
local log = new_log()
-- Number of the last list that each peer has received, by its address.
local offsets = new_recent(OFFSETS_MAX, OFFSET_MS)
-- Coroutines that are about to append to the log. HAProxy may interrupt them.
local appending = 0

function purge_peers.has_peers() return peers ~= nil end

-- Adds a purge of this pod.
function purge_peers.add(item, entry)
  if peers then outgoing:add(item, entry) end
end

-- Adds a purge of another pod, at `ms`, if the fleet may have pods that this pod does not know.
function purge_peers.relay(entry, ms)
  local is_recent = math.abs(os.time() * 1000 - ms) < RELAY_MS
  if peers and is_recent and peers.is_crowded() then relayed:add(entry, entry) end
end

local function append_outgoing()
  if outgoing:is_empty() then return end
  local batch = outgoing
  outgoing, appending = new_batch(), appending + 1
  local lists = batch:lists()
  core.yield()
  for _, text in ipairs(lists) do log:append(text) end
  appending = appending - 1
end

-- The offset of a peer. A peer without an offset gets the whole log: its cache may be of any age.
local function offset_of(peer)
  local now = now_ms()
  peer.purge_offset = peer.purge_offset or offsets:get(peer.address, now) or 0
  offsets:add(peer.address, peer.purge_offset, now)
  return peer.purge_offset
end

-- Sends the log to a peer, up to a number. Returns whether the peer has received that. `is_sending_purges` keeps other
-- coroutines from sending the same lists.
local function send(peer, goal)
  peer.is_sending_purges = true
  while not peer.is_gone and offset_of(peer) < goal do
    local text, number = log:after(peer.purge_offset)
    local ok, is_received = pcall(peers.send_purges, peer, text)
    if not ok or not is_received then break end
    peer.purge_offset = math.max(peer.purge_offset, number)
  end
  peer.is_sending_purges = false
  return offset_of(peer) >= goal
end

-- Whether other coroutines append to the log, or send the last few lists to this peer.
local function is_sent_soon(peer)
  return appending > 0 or peer.is_sending_purges and log.last - offset_of(peer) <= CATCH_UP_MAX
end

-- Returns whether a peer has received all purges of this pod. Sends them first if they are few.
function purge_peers.catch_up(peer)
  append_outgoing()
  for _ = 1, WAITS_MAX do
    if not is_sent_soon(peer) then break end
    core.msleep(WAIT_MS)
  end
  local goal = log.last
  local missing = goal - offset_of(peer)
  if appending > 0 then return false end
  return missing <= 0 or not peer.is_sending_purges and missing <= CATCH_UP_MAX and send(peer, goal)
end

local function is_behind(peer)
  return not peers.own_addresses[peer.address] and offset_of(peer) < log.last
end

local function begin_to_send(peer)
  core.register_task(function()
    if not peer.is_sending_purges then send(peer, log.last) end
  end)
end

-- Relays to random peers. Each of them relays a purge that is new to it, so that it reaches all pods with high
-- probability.
local function send_relayed()
  local batch, left = relayed, RELAY_PEERS
  relayed = new_batch()
  local lists = batch:lists()
  if #lists == 0 then return end
  for peer in some(peers.known()) do
    if left == 0 then break end
    if not peers.own_addresses[peer.address] then
      left = left - 1
      core.register_task(function()
        for _, text in ipairs(lists) do pcall(peers.send_purges, peer, text) end
      end)
    end
  end
end

local function send_all()
  core.msleep(SEND_MS)
  append_outgoing()
  send_relayed()
  for _, peer in ipairs(peers.known()) do
    if is_behind(peer) and not peer.is_sending_purges then begin_to_send(peer) end
  end
  peers.close_unused()
end

-- Whether a peer that answers lacks a purge of this pod.
local function has_unsent()
  if not outgoing:is_empty() or appending > 0 then return true end
  for _, peer in ipairs(peers.known()) do
    if is_behind(peer) then return true end
  end
  return false
end

-- `all`: the peers, as pooling.lua has them.
function purge_peers.start(all)
  peers = all
  require('pooling.forever')(send_all)
  drain.hold_while(has_unsent)
end

return purge_peers
