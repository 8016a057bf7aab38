-- Answers questions of peers: for a slot, to an offer, for a file, for a page, for the revision of this pod, whether
-- there is room. Also receives purges.
local askers = require('pooling.askers')
local canary = require('canary.state')
local drain = require('drain')
local live = require('live.values')
local tokens = require('peers.tokens')
local workers = require('workers')

-- What nginx says of a file of which it is asked for the first byte; the last one where there is none.
local HAS_IT = { [200] = true, [206] = true, [304] = true, [416] = true }

-- HAProxy listens on one socket for both families.
local function plain_address(address)
  return (tostring(address):gsub('^::ffff:', ''))
end

return function(settings, peers, capacity, lending, offering, borrowing)
  local purging = settings['purges'] == 1 and require('cache.purging')

  local function peer_of(fetches)
    peers.known()
    return peers.at(plain_address(fetches:src()))
  end

  -- Whether this pod is a canary that has been stopped. The one that asks may be cut off from whoever says so.
  local function is_over() return canary.own_side() == 'canary' and live['canary-share'] == 0 end

  -- A request of another pod that is to be rendered by this revision: a slot is kept, or it waits here.
  local function answer_to_side(asker, fetches, header)
    if header('x-corelane-revision') ~= settings['revision'] then return 'other' end
    if is_over() then return 'other' end
    local is_too_large = (tonumber(header('x-corelane-length')) or 0) > settings['body-max']
    if drain.is_draining() or workers.alive() == 0 or is_too_large then return 'none' end
    if capacity.free_slots(fetches) > lending.reserved() then
      return 'yes', lending.issue_side_ticket(asker, lending.reserve(asker.identity))
    end
    local waiting = capacity.queue_length(fetches) + lending.expected()
    if waiting >= live['queue-length-max'] then return 'full' end
    -- 0 would be a slot.
    return 'wait ' .. waiting + 1, lending.issue_side_ticket(asker)
  end

  -- The answer to a question of `asker`, and with "yes" the token of the reservation.
  local function answer_to(asker, what, fetches, header)
    local is_peer = settings['hand-over'] == 1 and header('x-corelane-revision') == settings.group()
    if is_peer and what == 'offer' then
      return borrowing.take_offer(peer_of(fetches), header('x-corelane-reservation'), asker)
    end
    if what == 'revision' then return 'revision' end
    if what == 'changed' then
      if purging then purging.receive(header('x-corelane-purge')) end
      return 'received'
    end
    if what == 'side' and settings['hand-over'] == 1 then return answer_to_side(asker, fetches, header) end
    -- A file needs no worker. Whether it is there nginx says: to `answer_file`.
    if what == 'file' and settings['own-revision'] and not drain.is_draining() then
      if header('x-corelane-own-revision') == settings['own-revision'] then return 'same' end
      return nil
    end
    if what == 'page' and settings['pages-of'] then
      if header('x-corelane-own-revision') ~= settings['pages-of'] then return 'other' end
      if drain.is_draining() then return 'none' end
      local length_max = live['queue-length-max']
      local is_full = length_max > 0 and capacity.queue_length(fetches) >= length_max
      if is_full or workers.alive() == 0 or fetches:nbsrv('own-pages') == 0 then return 'full' end
      return 'yes', lending.issue_page_ticket(asker)
    end
    if drain.is_draining() or workers.alive() == 0 then return 'full' end
    local free = capacity.free_slots(fetches)
    if is_peer and what == 'slot' then
      if free > lending.reserved() then
        return 'yes', lending.issue_ticket(asker, lending.reserve(asker.identity))
      end
      offering.remember(peer_of(fetches))
    end
    if free > 0 or 2 * capacity.queue_length(fetches) < live['queue-length-max'] then return 'room' end
    return 'full'
  end

  -- Sets txn.answer, txn.token and perhaps txn.reservation or txn.revision; for a question that HAProxy has to answer
  -- txn.token alone.
  -- Nothing for somebody who does not have the key.
  core.register_action('answer_peer', { 'http-req' }, function(txn)
    local headers = txn.http:req_get_headers()
    local function header(name) return headers[name] and headers[name][0] end
    local what, from, token = header('x-corelane-ask'), header('x-corelane-from'), header('x-corelane-token') or ''
    if what == 'hello' then
      local proof = askers.welcome(from, token)
      if not proof then return end
      txn:set_var('txn.answer', 'welcome')
      txn:set_var('txn.identity', tokens.identity)
      txn:set_var('txn.token', proof)
      return
    end
    local asker = askers.known(from, token)
    if not asker then return end
    txn:set_var('txn.token', asker.answer)
    local answer, reservation = answer_to(asker, what, txn.f, header)
    if not answer then
      txn:set_var('txn.wants_file', true)
      txn:set_var('txn.asker', from)
      return
    end
    txn:set_var('txn.answer', answer)
    if reservation then txn:set_var('txn.reservation', reservation) end
    if what == 'revision' or what == 'side' then
      txn:set_var('txn.revision', settings['revision'])
      txn:set_var('txn.deployment', settings['deployment'])
    end
  end)

  -- nginx has told whether it has a file: sets txn.answer, and txn.reservation to fetch it with.
  core.register_action('answer_file', { 'http-res' }, function(txn)
    local asker = askers.at(txn:get_var('txn.asker'))
    local has_it = asker ~= nil and HAS_IT[txn.f:status()]
    txn:set_var('txn.answer', has_it and 'yes' or 'no')
    if has_it then txn:set_var('txn.reservation', lending.issue_file_ticket(asker)) end
  end)
end
