-- Slots of this pod that are kept for requests of peers, and the tickets that these come with.

local figures = require('metrics.figures')
local new_reservations = require('pooling.reservations')
local new_tickets = require('pooling.tickets')
local now_ms = require('clock')
local tokens = require('peers.tokens')

-- A reserved slot that nobody has taken by then is free again.
local RESERVATION_MS = 20
-- Its request may come later all the same (this pod has no CPU, the first packet is lost); it waits here then.
local TICKET_MS = 10000
local TICKETS_MAX = 4096

return function(peers, capacity)
  local reservations = new_reservations(RESERVATION_MS)
  local expected = new_reservations(RESERVATION_MS)
  local tickets = new_tickets(TICKET_MS, TICKETS_MAX)
  local lending = {}

  function lending.reserve(whose) return reservations:add(whose, now_ms()) end

  function lending.release(reservation) reservations:release(reservation) end

  -- How many slots are kept.
  function lending.reserved() return reservations:count(now_ms()) end

  local function issue(asker, entry)
    local name = tokens.random()
    local ticket
    ticket, entry.proof = peers.ticket_and_proof(asker.key, name, asker.identity, tokens.identity)
    tickets:add(ticket, entry, now_ms())
    return name
  end

  -- For the process that `asker` names: what it hands one request over with.
  function lending.issue_ticket(asker, reservation) return issue(asker, { reservation = reservation }) end

  -- The same for a request that will wait here because it belongs to this revision; until it comes it counts as one
  -- that waits.
  function lending.issue_side_ticket(asker, reservation)
    return issue(asker, { reservation = reservation or expected:add(asker.identity, now_ms()), is_for_side = true })
  end

  -- How many of these are on their way.
  function lending.expected() return expected:count(now_ms()) end

  -- The same for one file, which takes no slot.
  function lending.issue_file_ticket(asker) return issue(asker, { is_for_file = true }) end

  -- The same for one page, which finds its slot like a client's.
  function lending.issue_page_ticket(asker) return issue(asker, { is_for_page = true }) end

  -- A request comes from a peer, with the ticket that it has got for it. Sets txn.proof, and txn.slot_kept if it finds
  -- the slot that was kept for it, txn.for_side if it may wait here, or txn.for_asset or txn.for_page if it is for a
  -- file or a page; nothing for somebody who has no reservation.
  core.register_action('admit_hand_over', { 'http-req' }, function(txn)
    local ticket = txn:get_var('txn.ticket')
    local entry = ticket and tickets:take(ticket, now_ms())
    if not entry then return end
    txn:set_var('txn.proof', entry.proof)
    if entry.is_for_file then
      txn:set_var('txn.for_asset', true)
      return
    end
    if entry.is_for_page then
      txn:set_var('txn.for_page', true)
      return
    end
    figures.handed_over = figures.handed_over + 1
    reservations:release(entry.reservation)
    expected:release(entry.reservation)
    if entry.is_for_side then txn:set_var('txn.for_side', true) end
    if capacity.free_slots(txn.f) > 0 then txn:set_var('txn.slot_kept', true) end
  end)

  return lending
end
