-- Pods share their work: a request that finds no free slot here waits in backend "line" as ever, and meanwhile this pod
-- asks others, a random one at a time, for a free slot. One that says yes keeps the slot for a moment; the server
-- "borrowed-N" of "line" gets its address and takes exactly one request, the one that has waited longest. One that says
-- no remembers who asked, and offers the next slot that becomes free and that it has no use for.
-- docs/pooling.md tells why it is done like this. Arguments (haproxy.cfg, lua-load): key=value.

-- How soon a waiting pod asks again after a round without success, and how slow it becomes while all refuse.
local ASK_AGAIN_MS_MIN = 5
local ASK_AGAIN_MS_MAX = 50
-- The same where there is nobody to ask.
local ALONE_MS = 200
-- Rounds of first asks at the same time; more arrivals than this are covered by those, for each hands over the oldest.
local ROUNDS_MAX = 8
-- A round that was refused by all holds off the next one for so long: a bound for what a full fleet spends on asking.
local HOLD_OFF_MS = 10
-- An answer takes half a millisecond. A dead or frozen peer costs this once, and is then left alone for a while.
local ANSWER_MS_MAX = 200
local SHUN_MS_MIN = 1000
local SHUN_MS_MAX = 30000
-- A promised slot that nobody has taken by then is free again.
local PROMISE_MS = 20
-- Its request may come later all the same (this pod has no CPU, the first packet is lost); it waits here then.
local TICKET_MS = 10000
local TICKETS_MAX = 4096
-- Processes that have asked: what they show is computed once.
local ASKERS_MAX = 1024
-- Who has been refused is remembered for so long, and asks that peer again before it is forgotten.
local WANTED_MS = 250
local REMEMBERED_MS = 150
-- How often a pod looks whether it has a slot for those; less often the more wait here, who come first.
local OFFER_MS = 2
local OFFER_MS_MAX = 20
-- A server whose request has not got as far as its connection yet looks unused.
local OPENED_MS = 20
-- A peer that has some of our requests and does not answer this often in a row has lost them. The limit is longer than
-- that for a slot: a pod that is only short of CPU must not lose its renders.
local PULSE_MS = 300
local PULSE_ANSWER_MS_MAX = 500
local PULSES_MISSED_MAX = 3
-- Readiness: the queue has been full for so long; another pod had room at most so long ago; how often one looks.
local SAMPLE_MS = 250
local FULL_MS = 2000
local ROOM_MS = 5000
local LOOK_MS = 500

local settings = corelane_settings(
  'pooling.lua',
  { ... },
  { 'asks-max', 'hand-over', 'port', 'queue-length-max', 'revision', 'shed' },
  { revision = true }
)

math.randomseed(core.now().usec, core.now().sec)
local revision = settings['revision']

local now_ms = corelane_now_ms

---- Peers ----

local peers = {} -- by address: { kept, is_gone, known, shunned_until, shun_ms, is_self, remembers_until, room_at }
local candidates, candidates_at = {}, -math.huge
-- HAProxy makes a new object for each server whenever one walks through them.
local peer_servers, worker_servers = {}, {}

-- Addresses that DNS has now, but for our own and those that did not answer of late.
local function known_peers()
  local now = now_ms()
  if now - candidates_at < 100 then return candidates end
  -- Without a key nobody would answer.
  if #corelane_peer_keys() == 0 then return {} end
  candidates, candidates_at = {}, now
  local seen = {}
  for _, server in ipairs(peer_servers) do
    local address = server:get_addr():match('^(.*):%d+$')
    if address and address ~= '0.0.0.0' and address ~= '::' then
      local peer = peers[address] or { address = address, kept = {}, shunned_until = 0, shun_ms = SHUN_MS_MIN, remembers_until = 0, room_at = -math.huge }
      seen[address] = peer
      if not peer.is_self and now >= peer.shunned_until then candidates[#candidates + 1] = peer end
    end
  end
  for address, peer in pairs(peers) do
    if not seen[address] then corelane_forget_peer(peer) end
  end
  peers = seen
  return candidates
end

local function shun(peer)
  peer.shunned_until = now_ms() + peer.shun_ms
  peer.shun_ms = math.min(2 * peer.shun_ms, SHUN_MS_MAX)
  candidates_at = -math.huge
end

-- Who has a promise hands a request over with its ticket, once; the response shows the proof that it comes from who
-- has promised. Both follow from the promise for those who have the key.
local function ticket_and_proof(key, promise, from, to)
  return corelane_tokens(key, 'hand-over', promise, from, to)
end

-- What a peer says: "yes" (it keeps a slot for us), "room" (in its queue), "full"; to an offer "taken", "more" (it has
-- use for another one) or "none"; nil if it does not answer. With "yes" comes what to hand over a request with.
local function ask(peer, what, answer_ms_max, promise_for)
  local function headers(known)
    local promise = promise_for and promise_for(known)
    return { ['X-Corelane-Ask'] = what, ['X-Corelane-Revision'] = revision, ['X-Corelane-Promise'] = promise }
  end
  local reply = corelane_ask_peer(peer, settings['port'], headers, answer_ms_max or ANSWER_MS_MAX)
  local answer = reply and reply.body or nil
  if peer.is_self then
    candidates_at = -math.huge
  elseif answer then
    peer.shun_ms = SHUN_MS_MIN
  else
    shun(peer)
  end
  if answer == 'yes' or answer == 'room' then peer.room_at = now_ms() end
  if answer == 'full' then peer.room_at = -math.huge end
  if answer ~= 'yes' then return answer end
  local promise = reply['x-corelane-promise']
  if not corelane_is_token(promise) then return nil end
  return answer, { ticket_and_proof(reply.known.key, promise, corelane_identity, reply.known.identity) }
end

-- Everybody is asked anew who it is.
corelane_on_keys(function()
  for _, peer in pairs(peers) do
    peer.known, peer.shunned_until, peer.shun_ms = nil, 0, SHUN_MS_MIN
  end
  candidates_at = -math.huge
end)

---- Borrowing ----

local borrowed = {} -- by number + 1: { server, peer, hand_over, opened_at, missed }
local line, slots
local wake = core.queue()

local function waiting()
  return line:get_stats().qcur or 0
end

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

-- Asks up to `count` random peers, one after the other. True when one had a slot. Not those that will offer one anyway.
local function ask_round(count)
  local list, now = {}, now_ms()
  for _, peer in ipairs(known_peers()) do
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

-- A request is about to wait. The request itself goes on at once: by the time of the answer it stands in line.
core.register_action('ask_peers', { 'http-req' }, function()
  if wake:size() == 0 then wake:push(true) end
  if rounds >= ROUNDS_MAX or now_ms() - refused_at < HOLD_OFF_MS then return end
  rounds = rounds + 1
  core.register_task(function()
    local ok, found = pcall(ask_round, settings['asks-max'])
    rounds = rounds - 1
    if ok and not found then refused_at = now_ms() end
  end)
end)

-- For the waiting room, where requests stand while no worker of this pod is up: address of a peer that keeps a slot, and
-- the ticket and the proof for that.
if settings['hand-over'] == 1 then
  function corelane_find_peer()
    if now_ms() - refused_at < HOLD_OFF_MS then return nil end
    local list = known_peers()
    local peer = list[1] and list[math.random(#list)]
    local answer, hand_over
    if peer then answer, hand_over = ask(peer, 'slot') end
    if answer == 'yes' then
      return peer.address, hand_over[1], hand_over[2]
    end
    refused_at = now_ms()
  end
end

-- Runs `work` again and again. An error in it (HAProxy is out of some resource) must not end what it does for ever.
local function forever(work)
  core.register_task(function()
    while true do
      local ok, message = pcall(work)
      if not ok then
        core.log(core.warning, 'pooling: ' .. tostring(message))
        core.msleep(1000)
      end
    end
  end)
end

local pause_ms = ASK_AGAIN_MS_MIN

local function ask_again()
  if waiting() == 0 then
    wake:pop_wait()
    pause_ms = ASK_AGAIN_MS_MIN
  end
  core.msleep(pause_ms)
  if ask_round(1) then pause_ms = ASK_AGAIN_MS_MIN else pause_ms = math.min(pause_ms * 3 // 2, ASK_AGAIN_MS_MAX) end
  if #known_peers() == 0 then pause_ms = ALONE_MS end
end

local function feel_pulse(peer, slots_of_peer)
  local answers = ask(peer, 'pulse', PULSE_ANSWER_MS_MAX) ~= nil
  for _, slot in ipairs(slots_of_peer) do
    if slot.peer == peer and slot.server:get_cur_sess() > 0 then
      slot.missed = answers and 0 or slot.missed + 1
      if slot.missed >= PULSES_MISSED_MAX then slot.server:shut_sess() end
    end
  end
end

-- A peer that freezes or is cut off with our requests would keep them for timeouts.render. Their connections are closed
-- instead: nginx then does what it does for a worker that dies (`replay`). All at the same time: a node may die with
-- several peers.
local function watch_borrowed()
  core.msleep(PULSE_MS)
  local by_peer = {}
  for _, slot in ipairs(borrowed) do
    if slot.server:get_cur_sess() > 0 then
      by_peer[slot.peer] = by_peer[slot.peer] or {}
      table.insert(by_peer[slot.peer], slot)
    end
  end
  for peer, slots_of_peer in pairs(by_peer) do
    if not peer.pulse_felt then
      peer.pulse_felt = true
      core.register_task(function()
        pcall(feel_pulse, peer, slots_of_peer)
        peer.pulse_felt = false
      end)
    end
  end
  for _, peer in pairs(peers) do corelane_close_unused(peer) end
  -- A request can come into the queue without an arrival: one that could not be handed over is put back.
  if wake:size() == 0 and waiting() > 0 then wake:push(true) end
end

-- A response without the proof: whoever has answered is not who has promised.
core.register_action('distrust_peer', { 'http-res' }, function(txn)
  local number = tonumber((txn.f:srv_name() or ''):match('^borrowed%-(%d+)$'))
  local peer = number and borrowed[number + 1].peer or peers[txn:get_var('txn.peer') or '']
  if not peer then return end
  peer.known = nil
  shun(peer)
end)

---- Answering ----

local promises = {} -- times at which they end, in order
local tickets = {} -- by ticket: { proof, ends_at }
local issued = {} -- tickets, the oldest first; some are used by now

local function promised()
  local now = now_ms()
  while promises[1] and promises[1] <= now do table.remove(promises, 1) end
  return #promises
end

-- A promise for the process `from`: what it hands one request over with.
local function issue_ticket(from, key)
  local now = now_ms()
  while issued[1] and (#issued >= TICKETS_MAX or not tickets[issued[1]] or tickets[issued[1]].ends_at <= now) do
    tickets[table.remove(issued, 1)] = nil
  end
  local promise = corelane_random()
  local ticket, proof = ticket_and_proof(key, promise, from, corelane_identity)
  tickets[ticket], issued[#issued + 1] = { proof = proof, ends_at = now + TICKET_MS }, ticket
  return promise
end

local function queue_length(fetches)
  local late = settings['hand-over'] == 1 and fetches:queue('late') or 0
  return fetches:queue('line') + late + fetches:queue('workers') + fetches:fe_conn('waiting-room')
end

-- Not what `slots` has connections for: a request that has just left the queue is not connected yet, and to count its
-- slot as free would make the next one wait in line, from where it could be handed over a second time.
local function slots_not_taken(in_line)
  local taken = in_line
  for _, slot in ipairs(borrowed) do taken = taken - slot.server:get_cur_sess() end
  return slots:get_maxconn() - taken
end

local function free_slots(fetches)
  return math.min(slots_not_taken(fetches:be_conn('line') - fetches:queue('line')), fetches:be_conn_free('workers'))
end

---- Offering ----

local wanting = {} -- { peer, ends_at }, who has asked first first
local wanted = core.queue()

-- HAProxy listens on one socket for both families.
local function plain_address(address)
  return (tostring(address):gsub('^::ffff:', ''))
end

local function peer_of(fetches)
  known_peers()
  return peers[plain_address(fetches:src())]
end

local function remember(peer)
  if not peer or peer.is_self then return end
  local ends_at = now_ms() + WANTED_MS
  for _, entry in ipairs(wanting) do
    if entry.peer == peer then
      entry.ends_at = ends_at
      return
    end
  end
  wanting[#wanting + 1] = { peer = peer, ends_at = ends_at }
  if wanted:size() == 0 then wanted:push(true) end
end

-- As free_slots; for a task, which has no fetches, and only where a slot seems to be free: the figures cost more here.
local function has_slot_to_offer()
  if slots:get_cur_sess() >= slots:get_maxconn() or corelane_draining() then return false end
  local stats = line:get_stats()
  if stats.qcur > 0 or slots_not_taken(stats.scur) <= promised() then return false end
  local taken, places, workers = 0, 0, 0
  for _, server in ipairs(worker_servers) do
    taken, places, workers = taken + server:get_cur_sess(), places + server:get_maxconn(), workers + 1
  end
  return places * core.backends['workers-up']:get_srv_act() // workers - taken > promised()
end

local function offer(peer)
  local answer = ask(peer, 'offer', nil, function(known) return issue_ticket(known.identity, known.key) end)
  -- One that has taken it sends its request within the time of the promise.
  if answer ~= 'taken' and answer ~= 'more' then table.remove(promises) end
  if answer == 'more' then remember(peer) end
end

local function offer_slots()
  if #wanting == 0 then wanted:pop_wait() end
  core.msleep(math.min(OFFER_MS * (1 + waiting()), OFFER_MS_MAX))
  local now = now_ms()
  while wanting[1] and wanting[1].ends_at <= now do table.remove(wanting, 1) end
  if #wanting == 0 or not has_slot_to_offer() then return end
  local peer = table.remove(wanting, 1).peer
  promises[#promises + 1] = now + PROMISE_MS
  core.register_task(function() pcall(offer, peer) end)
end

---- Who asks ----

local askers, askers_count = {}, 0 -- by identity: { identity, key, question, answer }

corelane_on_keys(function() askers, askers_count = {}, 0 end)

-- The process `from` if it has shown what only a pod with the key can know, for this process.
local function known_asker(from, token)
  if not corelane_is_token(from) or from == corelane_identity then return nil end
  local asker = askers[from]
  if asker and corelane_same_token(token, asker.question) then return asker end
  for _, key in ipairs(corelane_peer_keys()) do
    local question = corelane_tokens(key.text, 'question', from, corelane_identity)
    if corelane_same_token(token, question) then
      if askers_count >= ASKERS_MAX then askers, askers_count = {}, 0 end
      if not asker then askers_count = askers_count + 1 end
      local answer = corelane_tokens(key.text, 'answer', corelane_identity, from)
      askers[from] = { identity = from, key = key.text, question = question, answer = answer }
      return askers[from]
    end
  end
end

-- Addresses of this pod, at most one of each family. Not `dst`, which whoever opens the connection can write into the head of the
-- PROXY protocol: a stranger at an address that was a peer's could let another pod answer for him, and stand between the two.
local own_addresses = {}
for address in (os.getenv('CORELANE_POD_IPS') or ''):gmatch('[%x.:]+') do
  if #own_addresses < 2 then own_addresses[#own_addresses + 1] = address end
end

-- To somebody who does not know which process this is: the token that tells, if he has the key and has meant this pod.
local function welcome(from, tokens)
  if not corelane_is_token(from) then return nil end
  for token in tokens:sub(1, 128):gmatch('%x+') do
    for _, key in ipairs(corelane_peer_keys()) do
      for _, address in ipairs(own_addresses) do
        if corelane_same_token(token, (corelane_tokens(key.text, 'hello', from, address))) then
          return (corelane_tokens(key.text, 'welcome', corelane_identity, from, address))
        end
      end
    end
  end
end

-- A peer keeps a slot for us: an answer to an earlier question.
local function take_offer(peer, promise, asker)
  if not peer or not corelane_is_token(promise) then return 'none' end
  peer.remembers_until = 0
  local hand_over = { ticket_and_proof(asker.key, promise, corelane_identity, asker.identity) }
  if waiting() == 0 or not borrow(peer, hand_over) then return 'none' end
  if waiting() == 0 then return 'taken' end
  peer.remembers_until = now_ms() + REMEMBERED_MS
  return 'more'
end

-- The answer to a question of `asker`, and with "yes" the promise.
local function answer_to(asker, what, fetches, header)
  local is_peer = settings['hand-over'] == 1 and header('x-corelane-revision') == revision
  if is_peer and what == 'offer' then return take_offer(peer_of(fetches), header('x-corelane-promise'), asker) end
  if corelane_draining() or corelane_workers_alive() == 0 then return 'full' end
  local free = free_slots(fetches)
  if is_peer and what == 'slot' then
    if free > promised() then
      promises[#promises + 1] = now_ms() + PROMISE_MS
      return 'yes', issue_ticket(asker.identity, asker.key)
    end
    remember(peer_of(fetches))
  end
  if free > 0 or 2 * queue_length(fetches) < settings['queue-length-max'] then return 'room' end
  return 'full'
end

-- Sets txn.answer, txn.token and perhaps txn.promise; for a question that HAProxy has to answer txn.token alone. Nothing for
-- somebody who does not have the key.
core.register_action('answer_peer', { 'http-req' }, function(txn)
  local headers = txn.http:req_get_headers()
  local function header(name) return headers[name] and headers[name][0] end
  local what, from, token = header('x-corelane-ask'), header('x-corelane-from'), header('x-corelane-token') or ''
  if what == 'hello' then
    local proof = welcome(from, token)
    if not proof then return end
    txn:set_var('txn.answer', 'welcome')
    txn:set_var('txn.identity', corelane_identity)
    txn:set_var('txn.token', proof)
    return
  end
  local asker = known_asker(from, token)
  if not asker then return end
  txn:set_var('txn.token', asker.answer)
  local answer, promise = answer_to(asker, what, txn.f, header)
  txn:set_var('txn.answer', answer)
  if promise then txn:set_var('txn.promise', promise) end
end)

-- A request comes from a peer, with the ticket that it has got for it. Sets txn.proof, and txn.slot_kept if it finds the
-- slot that was kept for it; nothing for somebody who was promised none.
core.register_action('admit_hand_over', { 'http-req' }, function(txn)
  local ticket = txn:get_var('txn.ticket')
  local entry = ticket and tickets[ticket]
  if not entry then return end
  tickets[ticket] = nil
  if entry.ends_at <= now_ms() then return end
  if promised() > 0 then table.remove(promises, 1) end
  txn:set_var('txn.proof', entry.proof)
  if free_slots(txn.f) > 0 then txn:set_var('txn.slot_kept', true) end
end)

---- Readiness ----

local full_since = nil
local is_full = false
local looked_at = -math.huge

-- The peers that had room when they were asked last, a while ago at most.
local function peers_with_room()
  local list, now = {}, now_ms()
  for _, peer in ipairs(known_peers()) do
    if now - peer.room_at <= ROOM_MS then list[#list + 1] = peer end
  end
  return list
end

local function sample_queue()
  core.msleep(SAMPLE_MS)
  local length_max = settings['queue-length-max']
  local length = waiting() + (core.backends['workers']:get_stats().qcur or 0)
    + (core.frontends['waiting-room']:get_stats().scur or 0)
  local now = now_ms()
  if length >= length_max and length > 0 then
    full_since = full_since or now
    if now - full_since >= FULL_MS then is_full = true end
  else
    full_since = nil
    if 2 * length <= length_max then is_full = false end
  end
  -- Only a pod that is in trouble needs to know how the others are. One that had room may be full by now.
  if full_since and now - looked_at >= LOOK_MS then
    looked_at = now
    local list = peers_with_room()
    if #list == 0 then list = known_peers() end
    if #list > 0 then ask(list[math.random(#list)], 'look') end
  end
end

-- Whether new connections had better go to another pod. Never when no other is known to have room: a fleet that is full
-- everywhere stays ready everywhere.
core.register_fetches('corelane_shed', function()
  return is_full and #peers_with_room() > 0
end)

core.register_init(function()
  line = core.backends['line']
  slots = line.servers['slots']
  for _, server in pairs(core.backends['peers'].servers) do peer_servers[#peer_servers + 1] = server end
  for name, server in pairs(core.backends['workers'].servers) do
    if name:match('^worker%-') then worker_servers[#worker_servers + 1] = server end
  end
end)
core.register_task(function()
  for name, server in pairs(line.servers) do
    if name:match('^borrowed%-') then borrowed[#borrowed + 1] = { server = server, opened_at = -math.huge, missed = 0 } end
  end
  if settings['hand-over'] ~= 1 then return end
  forever(ask_again)
  forever(offer_slots)
  forever(watch_borrowed)
end)
if settings['shed'] == 1 then forever(sample_queue) end
