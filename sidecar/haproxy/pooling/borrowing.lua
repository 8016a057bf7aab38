-- Finds free slots in other pods for what waits here, and opens the server "borrowed-N" of "line" for one request each.

local live = require('live.values')
local now_ms = require('clock')
local tokens = require('peers.tokens')
local waiting_room = require('waiting-room')

-- How soon a waiting pod asks again after a round without success, and how slow it becomes while all refuse.
local ASK_AGAIN_MS_MIN = 5
local ASK_AGAIN_MS_MAX = 50
-- The same where there is nobody to ask.
local ALONE_MS = 200
-- Rounds of first asks at the same time; more arrivals than this are covered by those, for each hands over the oldest.
local ROUNDS_MAX = 8
-- A round that was refused by all holds off the next one for so long: a bound for what a full fleet spends on asking.
local HOLD_OFF_MS = 10
-- Who has refused asks us before it forgets that we asked.
local REMEMBERED_MS = 150
-- A server whose request has not got as far as its connection yet looks unused.
local OPENED_MS = 20

return function(settings, peers, capacity, borrowed)
  local ask = peers.ask
  local borrowing = {}
  local wake = core.queue()

  -- A server that nobody uses, if possible one that has this peer's address already.
  local function unused_slot(peer)
    local unused
    local now = now_ms()
    for _, slot in ipairs(borrowed) do
      if slot.server:get_cur_sess() == 0 and now - slot.opened_at >= OPENED_MS then
        if slot.peer == peer then return slot end
        unused = unused or slot
      end
    end
    return unused
  end

  -- Hands the oldest waiting request over to a peer that keeps a slot for it. False if there is nothing to do it with.
  local function borrow(peer, hand_over)
    local slot = unused_slot(peer)
    if not slot then return false end
    -- HAProxy applies an address a moment later, but before the request that is handed over now connects.
    if slot.peer ~= peer then slot.server:set_addr(peer.address, settings['port']) end
    slot.peer, slot.hand_over, slot.opened_at, slot.missed = peer, hand_over, now_ms(), 0
    -- Weight 0 keeps a server out. maxconn, set to what it is, makes HAProxy look into the queue; it takes one.
    slot.server:set_weight('1')
    slot.server:set_maxconn(1)
    slot.server:set_weight('0')
    return true
  end

  -- The ticket that a connection of borrowed-N begins with. Only here it is known which request it is for, and so which
  -- proof its response must have.
  core.register_fetches('corelane_ticket', function(txn, number)
    local hand_over = borrowed[tonumber(number) + 1].hand_over
    if not hand_over then return '' end
    txn:set_var('txn.proof', hand_over[2])
    return hand_over[1]
  end)

  -- Asks up to `count` random peers, one after the other. True when one had a slot. Not those that will offer one
  -- anyway.
  local function ask_round(count)
    local list, now = {}, now_ms()
    for _, peer in ipairs(peers.known()) do
      if now >= peer.remembers_until then list[#list + 1] = peer end
    end
    for _ = 1, math.min(count, #list) do
      local peer = table.remove(list, math.random(#list))
      -- Before the question: a second round at the same time asks others.
      peer.remembers_until = now_ms() + REMEMBERED_MS
      local answer, hand_over = ask(peer, 'slot')
      if answer == 'yes' then
        peer.remembers_until = 0
        borrow(peer, hand_over)
        return true
      end
    end
    return false
  end

  local rounds = 0
  local refused_at = -math.huge

  -- A request is about to wait. The request itself goes on at once: by the time of the answer it waits in the queue.
  core.register_action('ask_peers', { 'http-req' }, function()
    borrowing.wake()
    if rounds >= ROUNDS_MAX or now_ms() - refused_at < HOLD_OFF_MS then return end
    rounds = rounds + 1
    core.register_task(function()
      local ok, found = pcall(ask_round, live['asks-max'])
      rounds = rounds - 1
      if ok and not found then refused_at = now_ms() end
    end)
  end)

  -- Requests stand in the waiting room while no worker of this pod is up.
  if settings['hand-over'] == 1 then
    waiting_room.set_way_out(function()
      if now_ms() - refused_at < HOLD_OFF_MS then return nil end
      local list = peers.known()
      local peer = list[1] and list[math.random(#list)]
      local answer, hand_over
      if peer then answer, hand_over = ask(peer, 'slot') end
      if answer == 'yes' then
        return peer.address, hand_over[1], hand_over[2]
      end
      refused_at = now_ms()
    end)
  end

  -- Makes the loop look: something waits.
  function borrowing.wake()
    if wake:size() == 0 then wake:push(true) end
  end

  local pause_ms = ASK_AGAIN_MS_MIN

  -- One round for what waits; for a loop.
  function borrowing.ask_again()
    if capacity.waiting() == 0 then
      wake:pop_wait()
      pause_ms = ASK_AGAIN_MS_MIN
    end
    core.msleep(pause_ms)
    if ask_round(1) then pause_ms = ASK_AGAIN_MS_MIN else pause_ms = math.min(pause_ms * 3 // 2, ASK_AGAIN_MS_MAX) end
    if #peers.known() == 0 then pause_ms = ALONE_MS end
  end

  -- A peer keeps a slot for us: an answer to an earlier question.
  function borrowing.take_offer(peer, reservation, asker)
    if not peer or not tokens.is_token(reservation) then return 'none' end
    peer.remembers_until = 0
    local hand_over = { peers.ticket_and_proof(asker.key, reservation, tokens.identity, asker.identity) }
    if capacity.waiting() == 0 or not borrow(peer, hand_over) then return 'none' end
    if capacity.waiting() == 0 then return 'taken' end
    peer.remembers_until = now_ms() + REMEMBERED_MS
    return 'more'
  end

  -- A response without the proof: whoever has answered is not who has reserved.
  core.register_action('distrust_peer', { 'http-res' }, function(txn)
    local number = tonumber((txn.f:srv_name() or ''):match('^borrowed%-(%d+)$'))
    local peer = number and borrowed[number + 1].peer or peers.at(txn:get_var('txn.peer') or '')
    if not peer then return end
    peer.known = nil
    peers.eject(peer)
  end)

  return borrowing
end
