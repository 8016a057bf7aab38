-- Where requests wait while no worker of this pod is up.
local came_at = require('came')
local now_ms = require('clock')
local workers = require('workers')

-- A request sees a worker that came up at most this much later.
local POLL_MS = 50

local waiting_room = {}
local settings
local find_peer = nil

function waiting_room.start(arguments)
  settings = arguments
end

-- Where pods share their work: gives the address of another pod that keeps a slot for a request, its ticket and its
-- proof, or nil.
function waiting_room.set_way_out(find)
  find_peer = find
end

-- Holds a request until a worker is up, or until the queue time-out is over since it came; txn.waited_ms tells how long
-- it was. Another pod may have it meanwhile (txn.peer), but for one that has come from there, and for a WebSocket.
core.register_action('wait_for_worker', { 'http-req' }, function(txn)
  local begin_ms = now_ms()
  local may_leave = find_peer and not txn.f:req_fhdr('X-Corelane-Handed-Over') and not txn.f:req_fhdr('Upgrade')
  local came_ms = came_at(txn, begin_ms)
  while workers.up() == 0 and now_ms() - came_ms < settings['queue-timeout-ms'] do
    local peer, ticket, proof
    if may_leave then peer, ticket, proof = find_peer() end
    if peer then
      txn:set_var('txn.peer', peer)
      txn:set_var('txn.ticket', ticket)
      txn:set_var('txn.proof', proof)
      break
    end
    core.msleep(POLL_MS)
  end
  txn:set_var('txn.waited_ms', now_ms() - begin_ms)
end)

return waiting_room
