-- The other pods of the RenderService: which there are, and asking one of them something.

local askers = require('pooling.askers')
local ejection = require('pooling.ejection')
local ids = require('stickiness.ids')
local keys = require('peers.keys')
local now_ms = require('clock')
local questions = require('peers.questions')
local tokens = require('peers.tokens')

-- DNS is looked at so often at most.
local LOOK_MS = 100
-- An answer takes half a millisecond. A dead or frozen peer costs this once, and is then ejected for a while.
local ANSWER_MS_MAX = 200
-- The same for one that its nginx has to answer, by a look at its disk.
local FILE_MS_MAX = 400

-- Of this pod, as kubelet says.
local own_addresses = {}
for _, address in ipairs(askers.own_addresses) do own_addresses[address] = true end

-- A pod at an address. What it says of itself comes to it: `known`, `is_self`, `is_gone` (peers/questions.lua).
local function new_peer(address)
  return {
    address = address,
    kept = {}, -- open connections
    ejection = ejection.none(),
    remembers_until = 0, -- that we have asked for a slot
    room_at = -math.huge, -- when it had room last
  }
end

return function(settings)
  local by_address = {} -- what new_peer makes
  local candidates, candidates_at = {}, -math.huge
  local is_crowded = false -- all places for peers are taken: there may be more pods
  local learned = 0 -- how often a peer has told of what revision it is
  -- HAProxy makes a new object for each server whenever one walks through them.
  local servers = {}

  -- Addresses that DNS has now, but for our own and those that did not answer of late.
  local function known()
    local now = now_ms()
    if now - candidates_at < LOOK_MS then return candidates end
    -- Without a key nobody would answer.
    if #keys.all() == 0 then return {} end
    candidates, candidates_at = {}, now
    local seen, count = {}, 0
    for _, server in ipairs(servers) do
      local address = server:get_addr():match('^(.*):%d+$')
      if address and address ~= '0.0.0.0' and address ~= '::' then
        count = count + 1
        local peer = by_address[address] or new_peer(address)
        seen[address] = peer
        if not peer.is_self and not ejection.is_on(peer.ejection, now) then candidates[#candidates + 1] = peer end
      end
    end
    for address, peer in pairs(by_address) do
      if not seen[address] then questions.forget(peer) end
    end
    by_address, is_crowded = seen, count == #servers
    return candidates
  end

  -- `asked_ms`: when it was asked what it has not answered; now unless given.
  local function eject(peer, asked_ms)
    local now = now_ms()
    ejection.failed(peer.ejection, asked_ms or now, now)
    candidates_at = -math.huge
  end

  -- Who has a reservation hands a request over with its ticket, once; the response shows the proof that it comes from
  -- who has reserved. Both follow from the token of the reservation for those who have the key.
  local function ticket_and_proof(key, reservation, from, to)
    return tokens.pair(key, 'hand-over', reservation, from, to)
  end

  -- One question: the reply, or nil. Who does not answer is left alone for a while.
  local function put(peer, headers_for, answer_ms_max, target)
    local asked_ms = now_ms()
    local reply = questions.ask(peer, settings['port'], headers_for, answer_ms_max or ANSWER_MS_MAX, target)
    if peer.is_self then
      candidates_at = -math.huge
    elseif reply then
      ejection.answered(peer.ejection)
    else
      eject(peer, asked_ms)
    end
    return reply
  end

  -- What it takes to hand a request over with, if the reply has that.
  local function hand_over_of(reply)
    local reservation = reply['x-corelane-reservation']
    if not tokens.is_token(reservation) then return nil end
    return { ticket_and_proof(reply.known.key, reservation, tokens.identity, reply.known.identity) }
  end

  -- What a peer says: "yes" (it keeps a slot for us), "room" (in its queue), "full"; to an offer "taken", "more" (it
  -- has use for another one) or "none"; for a page "yes", "full",
  -- "other" (it is of another revision) or "none" (it drains); nil if it does not answer. With
  -- "yes" comes what to hand over a request with.
  local function ask(peer, what, answer_ms_max, reservation_for)
    local function headers(other)
      return {
        ['X-Corelane-Ask'] = what,
        ['X-Corelane-Revision'] = settings.group(),
        ['X-Corelane-Own-Revision'] = settings['pages-of'],
        ['X-Corelane-Reservation'] = reservation_for and reservation_for(other),
      }
    end
    local reply = put(peer, headers, answer_ms_max)
    local answer = reply and reply.body or nil
    if answer == 'yes' and what == 'slot' or answer == 'room' then peer.room_at = now_ms() end
    if answer == 'full' then peer.room_at = -math.huge end
    if answer ~= 'yes' then return answer end
    local hand_over = hand_over_of(reply)
    if hand_over then return answer, hand_over end
  end

  -- A process never changes its revision, nor what it calls itself.
  local function learn_revision(peer, reply)
    if peer.revision_of == reply.known.identity then return end
    peer.revision_of = reply.known.identity
    peer.revision = tonumber((reply['x-corelane-revision'] or ''):match('^%x%x?%x?%x?%x?%x?%x?%x?%x?%x?$') or '', 16)
    peer.deployment = ids.valid(reply['x-corelane-deployment'])
    learned = learned + 1
  end

  -- Asks a peer of what revision it is: peer.revision, peer.deployment.
  local function ask_revision(peer)
    local function headers() return { ['X-Corelane-Ask'] = 'revision' } end
    local reply = put(peer, headers)
    if reply then learn_revision(peer, reply) end
  end

  -- Asks a peer to take a request of so many bytes because it is of this revision: how many wait before it, 0 if it
  -- keeps a slot, and what to hand the request over with; nil if it does not take it.
  local function ask_side(peer, revision, bytes, answer_ms_max)
    local function headers()
      return {
        ['X-Corelane-Ask'] = 'side',
        ['X-Corelane-Revision'] = ('%010x'):format(revision),
        ['X-Corelane-Length'] = bytes,
      }
    end
    local reply = put(peer, headers, math.min(answer_ms_max, ANSWER_MS_MAX))
    if not reply then return nil end
    learn_revision(peer, reply)
    local waiting = reply.body == 'yes' and 0 or tonumber(reply.body:match('^wait (%d%d?%d?%d?%d?)$'))
    local hand_over = waiting and hand_over_of(reply)
    if hand_over then return waiting, hand_over end
  end

  -- Asks a peer of another revision for a file, by its path: "yes" and what to fetch it with, "no" (it has not got it),
  -- "same" (it is of this one); anything else is no answer to that.
  local function ask_file(peer, path, answer_ms_max)
    local function headers()
      return { ['X-Corelane-Ask'] = 'file', ['X-Corelane-Own-Revision'] = settings['own-revision'] }
    end
    local reply = put(peer, headers, math.min(answer_ms_max, FILE_MS_MAX), path)
    if not reply then return nil end
    -- It is told of by its revision; where that is no number it is remembered here.
    if reply.body == 'same' and peer.same_of ~= reply.known.identity then
      peer.same_of = reply.known.identity
      learned = learned + 1
    end
    if reply.body ~= 'yes' then return reply.body end
    local hand_over = hand_over_of(reply)
    if hand_over then return 'yes', hand_over end
  end

  -- Sends a list of stamped purges (cache/purge-list.lua) to a peer. Returns whether the peer has received it.
  local function send_purges(peer, text)
    local function headers() return { ['X-Corelane-Ask'] = 'changed', ['X-Corelane-Purge'] = text } end
    return put(peer, headers) ~= nil
  end

  -- Everybody is asked anew who it is.
  keys.on_change(function()
    for _, peer in pairs(by_address) do
      peer.known, peer.ejection = nil, ejection.none()
    end
    candidates_at = -math.huge
  end)

  core.register_init(function()
    for _, server in pairs(core.backends['peers'].servers) do servers[#servers + 1] = server end
  end)

  return {
    own_addresses = own_addresses,
    ask = ask,
    ask_file = ask_file,
    ask_revision = ask_revision,
    ask_side = ask_side,
    eject = eject,
    is_crowded = function() return is_crowded end,
    known = known,
    learned = function() return learned end,
    send_purges = send_purges,
    ticket_and_proof = ticket_and_proof,
    at = function(address) return by_address[address] end,
    close_unused = function()
      for _, peer in pairs(by_address) do questions.close_unused(peer) end
    end,
  }
end
