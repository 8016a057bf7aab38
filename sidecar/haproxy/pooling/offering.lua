-- Offers slots that become free, and that this pod has no use for, to peers that were refused one.

local now_ms = require('clock')

-- Who has been refused is remembered for so long.
local WANTED_MS = 250
-- How often a pod looks whether it has a slot for those; less often the more wait here, who come first.
local OFFER_MS = 2
local OFFER_MS_MAX = 20

return function(peers, capacity, lending)
  local ask = peers.ask
  local offering = {}
  local wanting = {} -- { peer, ends_at }, who has asked first first
  local wanted = core.queue()

  -- Remembers that a peer wants a slot.
  function offering.remember(peer)
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

  local function offer(peer, reservation)
    local answer = ask(peer, 'offer', nil, function(known) return lending.issue_ticket(known, reservation) end)
    -- One that has taken it sends its request within the time of the reservation.
    if answer ~= 'taken' and answer ~= 'more' then lending.release(reservation) end
    if answer == 'more' then offering.remember(peer) end
  end

  -- Offers one slot; for a loop.
  function offering.offer_slots()
    if #wanting == 0 then wanted:pop_wait() end
    core.msleep(math.min(OFFER_MS * (1 + capacity.waiting()), OFFER_MS_MAX))
    local now = now_ms()
    while wanting[1] and wanting[1].ends_at <= now do table.remove(wanting, 1) end
    if #wanting == 0 or not capacity.has_more_than(lending.reserved()) then return end
    local peer = table.remove(wanting, 1).peer
    local reservation = lending.reserve(peer.address)
    core.register_task(function() pcall(offer, peer, reservation) end)
  end

  return offering
end
