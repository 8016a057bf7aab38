-- A peer that freezes or is cut off with our requests would keep them for timeouts.render. Their connections are closed
-- instead: nginx then does what it does for a worker that dies (`replay`).

-- A peer that has some of our requests and does not answer this often in a row has lost them. The limit is longer than
-- that for a slot: a pod that is only short of CPU must not lose its renders.
local HEARTBEAT_MS = 300
local ANSWER_MS_MAX = 500
local MISSED_MAX = 3

-- `more`: lists of slots like `borrowed`, by whatever.
return function(peers, borrowed, more)
  local function check(peer, slots_of_peer)
    local answers = peers.ask(peer, 'heartbeat', ANSWER_MS_MAX) ~= nil
    for _, slot in ipairs(slots_of_peer) do
      if slot.peer == peer and slot.server:get_cur_sess() > 0 then
        slot.missed = answers and 0 or slot.missed + 1
        if slot.missed >= MISSED_MAX then slot.server:shut_sess() end
      end
    end
  end

  -- Once round all who have requests of ours, at the same time: a node may die with several peers. For a loop.
  return function()
    core.msleep(HEARTBEAT_MS)
    local by_peer = {}
    local function add(slot)
      if slot.peer and slot.server:get_cur_sess() > 0 then
        by_peer[slot.peer] = by_peer[slot.peer] or {}
        table.insert(by_peer[slot.peer], slot)
      end
    end
    for _, slot in ipairs(borrowed) do add(slot) end
    for _, slots in ipairs(more) do
      for _, slot in pairs(slots) do add(slot) end
    end
    for peer, slots_of_peer in pairs(by_peer) do
      if not peer.is_checked then
        peer.is_checked = true
        core.register_task(function()
          pcall(check, peer, slots_of_peer)
          peer.is_checked = false
        end)
      end
    end
  end
end
