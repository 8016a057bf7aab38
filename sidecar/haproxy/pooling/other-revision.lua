-- A pod of another revision, for a file that this one's image lacks: while a rollout goes on, pages of either come to
-- clients, and what they need may be asked of either.

local now_ms = require('clock')

-- Who may be of another revision is asked, one after the other; a fleet without a rollout is known after some files.
local ASKS_MAX = 4
-- Who has no files for us, or does not understand, is not asked before.
local PAUSE_MS = 1000

return function(peers)
  -- Whether it may have what we have not. A process never changes its revision.
  local function is_candidate(peer, now)
    local is_same = peer.known and peer.same_revision == peer.known.identity
    return not is_same and now >= (peer.no_files_until or 0)
  end

  -- Sets txn.peer, txn.ticket and txn.proof if there is one.
  core.register_action('find_other_revision', { 'http-req' }, function(txn)
    local list, now, asks = peers.known(), now_ms(), 0
    local first = #list > 0 and math.random(#list) or 0
    for index = 0, #list - 1 do
      local peer = list[(first + index - 1) % #list + 1]
      if is_candidate(peer, now) then
        local answer, hand_over = peers.ask(peer, 'file')
        if answer == 'yes' then
          txn:set_var('txn.peer', peer.address)
          txn:set_var('txn.ticket', hand_over[1])
          txn:set_var('txn.proof', hand_over[2])
          return
        end
        if answer == 'same' then
          peer.same_revision = peer.known and peer.known.identity
        else
          peer.no_files_until = now + PAUSE_MS
        end
        asks = asks + 1
        if asks == ASKS_MAX then return end
      end
    end
  end)
end
