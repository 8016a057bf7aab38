-- The other pods of the RenderService: which there are, and asking one of them something.

local askers = require('pooling.askers')
local keys = require('peers.keys')
local now_ms = require('clock')
local questions = require('peers.questions')
local tokens = require('peers.tokens')

-- DNS is looked at so often at most.
local LOOK_MS = 100
-- An answer takes half a millisecond. A dead or frozen peer costs this once, and is then ejected for a while.
local ANSWER_MS_MAX = 200
local EJECTION_MS_MIN = 1000
local EJECTION_MS_MAX = 30000

-- Of this pod, as kubelet says.
local own_addresses = {}
for _, address in ipairs(askers.own_addresses) do own_addresses[address] = true end

-- A pod at an address. What it says of itself comes to it: `known`, `is_self`, `is_gone` (peers/questions.lua).
local function new_peer(address)
  return {
    address = address,
    kept = {}, -- open connections
    ejected_until = 0,
    ejection_ms = EJECTION_MS_MIN,
    remembers_until = 0, -- that we have asked for a slot
    room_at = -math.huge, -- when it had room last
  }
end

return function(settings)
  local by_address = {} -- what new_peer makes
  local candidates, candidates_at = {}, -math.huge
  -- HAProxy makes a new object for each server whenever one walks through them.
  local servers = {}

  -- Addresses that DNS has now, but for our own and those that did not answer of late.
  local function known()
    local now = now_ms()
    if now - candidates_at < LOOK_MS then return candidates end
    -- Without a key nobody would answer.
    if #keys.all() == 0 then return {} end
    candidates, candidates_at = {}, now
    local seen = {}
    for _, server in ipairs(servers) do
      local address = server:get_addr():match('^(.*):%d+$')
      if address and address ~= '0.0.0.0' and address ~= '::' then
        local peer = by_address[address] or new_peer(address)
        seen[address] = peer
        if not peer.is_self and now >= peer.ejected_until then candidates[#candidates + 1] = peer end
      end
    end
    for address, peer in pairs(by_address) do
      if not seen[address] then questions.forget(peer) end
    end
    by_address = seen
    return candidates
  end

  local function eject(peer)
    peer.ejected_until = now_ms() + peer.ejection_ms
    peer.ejection_ms = math.min(2 * peer.ejection_ms, EJECTION_MS_MAX)
    candidates_at = -math.huge
  end

  -- Who has a reservation hands a request over with its ticket, once; the response shows the proof that it comes from
  -- who has reserved. Both follow from the token of the reservation for those who have the key.
  local function ticket_and_proof(key, reservation, from, to)
    return tokens.pair(key, 'hand-over', reservation, from, to)
  end

  -- What a peer says: "yes" (it keeps a slot for us), "room" (in its queue), "full"; to an offer "taken", "more" (it
  -- has use for another one) or "none"; for a file of another revision "yes" or "same"; for a page "yes", "full",
  -- "other" (it is of another revision) or "none" (it drains); nil if it does not answer. With
  -- "yes" comes what to hand over a request with.
  local function ask(peer, what, answer_ms_max, reservation_for)
    local function headers(other)
      return {
        ['X-Corelane-Ask'] = what,
        ['X-Corelane-Revision'] = settings.group(),
        ['X-Corelane-Own-Revision'] = settings['own-revision'] or settings['pages-of'],
        ['X-Corelane-Reservation'] = reservation_for and reservation_for(other),
      }
    end
    local reply = questions.ask(peer, settings['port'], headers, answer_ms_max or ANSWER_MS_MAX)
    local answer = reply and reply.body or nil
    if peer.is_self then
      candidates_at = -math.huge
    elseif answer then
      peer.ejection_ms = EJECTION_MS_MIN
    else
      eject(peer)
    end
    if answer == 'yes' and what == 'slot' or answer == 'room' then peer.room_at = now_ms() end
    if answer == 'full' then peer.room_at = -math.huge end
    if answer ~= 'yes' then return answer end
    local reservation = reply['x-corelane-reservation']
    if not tokens.is_token(reservation) then return nil end
    return answer, { ticket_and_proof(reply.known.key, reservation, tokens.identity, reply.known.identity) }
  end

  -- Everybody is asked anew who it is.
  keys.on_change(function()
    for _, peer in pairs(by_address) do
      peer.known, peer.ejected_until, peer.ejection_ms = nil, 0, EJECTION_MS_MIN
    end
    candidates_at = -math.huge
  end)

  core.register_init(function()
    for _, server in pairs(core.backends['peers'].servers) do servers[#servers + 1] = server end
  end)

  return {
    own_addresses = own_addresses,
    ask = ask,
    eject = eject,
    known = known,
    ticket_and_proof = ticket_and_proof,
    at = function(address) return by_address[address] end,
    close_unused = function()
      for _, peer in pairs(by_address) do questions.close_unused(peer) end
    end,
  }
end
