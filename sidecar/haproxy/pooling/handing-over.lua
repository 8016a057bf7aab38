-- A pod of a certain revision, for a request that belongs there: one that has a slot, or the one of those asked in
-- which the fewest wait.
local live = require('live.values')
local now_ms = require('clock')
local some = require('pooling.some')

-- Nobody is looked for any longer; a frozen pod costs this once, and is then left alone (peers.lua).
local LOOK_MS_MAX = 300
-- A server whose request has not got as far as its connection yet looks unused.
local OPENED_MS = 20
-- Where nobody had a place one asks again after so long: a bound for what a full revision costs.
local HOLD_OFF_MS = 10

return function(peers, revisions)
  -- One for each pod that has requests of ours, by number: { server, peer, opened_at, missed }. For heartbeats.
  local handing_over = { slots = {} }
  local refused_at = {} -- by revision, and whether one would have waited

  core.register_task(function()
    for name, server in pairs(core.backends['other-side'].servers) do
      local number = tonumber(name:match('^side%-(%d+)$'))
      if number then handing_over.slots[number] = { server = server, opened_at = -math.huge, missed = 0 } end
    end
  end)

  -- The number of a server for this pod.
  local function slot_for(peer)
    local unused
    local now = now_ms()
    for number, slot in pairs(handing_over.slots) do
      if slot.peer == peer then return number, slot end
      if not unused and slot.server:get_cur_sess() == 0 and now - slot.opened_at >= OPENED_MS then unused = number end
    end
    if unused then
      local slot = handing_over.slots[unused]
      slot.peer, slot.missed = peer, 0
      return unused, slot
    end
  end

  -- Whether this pod has as many requests at a peer as it may have.
  local function has_enough(peer, each_max)
    if not each_max then return false end
    for _, slot in pairs(handing_over.slots) do
      if slot.peer == peer then return slot.server:get_cur_sess() >= each_max end
    end
    return false
  end

  -- Pods of a revision in a random order, and behind them those of which one does not know it, if one guesses.
  local function candidates(revision, guesses)
    local sure, unsure = revisions.pods_of(revision)
    local next_sure, next_unsure = some(sure), some(guesses and unsure or {})
    return function() return next_sure() or next_unsure() end
  end

  -- Asks pods of a revision for a place for a request of so many bytes. `how`: `guesses` (those of which one does not
  -- know the revision are asked as well), `slot_only` (it is not to wait there), `each_max` (requests that one of them
  -- may have of this pod). Gives the number of the server, the pod, and what to hand the request over with; nothing if
  -- nobody takes it.
  function handing_over.find(revision, bytes, how)
    local ends_ms = now_ms() + LOOK_MS_MAX
    -- Who may have less must not speak for others.
    local kind = revision .. (how.slot_only and ' now' or '') .. (how.each_max and ' few' or '')
    if now_ms() - (refused_at[kind] or -math.huge) < HOLD_OFF_MS then return nil end
    local best
    local asked = false
    local next_candidate = candidates(revision, how.guesses)
    for _ = 1, live['asks-max'] do
      local peer, left_ms = next_candidate(), ends_ms - now_ms()
      if not peer or left_ms <= 0 then break end
      local waiting, hand_over
      if not has_enough(peer, how.each_max) then
        asked = true
        waiting, hand_over = peers.ask_side(peer, revision, bytes, left_ms)
      end
      if waiting and (waiting == 0 or not how.slot_only) and (not best or waiting < best.waiting) then
        best = { peer = peer, waiting = waiting, hand_over = hand_over }
        if waiting == 0 then break end
      end
    end
    if not best then
      if asked then refused_at[kind] = now_ms() end
      return nil
    end
    local number, slot = slot_for(best.peer)
    if not number then return nil end
    slot.opened_at = now_ms()
    return number, best.peer, best.hand_over
  end

  -- Leads a request there: sets txn.side_server, txn.peer, txn.ticket and txn.proof. Whether anybody takes it.
  function handing_over.lead(txn, revision, how)
    local number, peer, hand_over = handing_over.find(revision, txn.f:req_hdr('Content-Length'), how)
    if not number then return false end
    txn:set_var('txn.side_server', 'side-' .. number)
    txn:set_var('txn.peer', peer.address)
    txn:set_var('txn.ticket', hand_over[1])
    txn:set_var('txn.proof', hand_over[2])
    txn:set_var('txn.side_revision', ('%010x'):format(revision))
    return true
  end

  return handing_over
end
