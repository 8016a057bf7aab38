-- A pod of another revision, for a file that this one's image lacks: pages of each revision that lives come to clients,
-- and what they need may be asked of any. Names of files are without end, and anybody may ask for one: what is in vain
-- is bounded and remembered, and what is found costs nobody's budget.
local counts = require('stickiness.counts')
local new_budget = require('budget')
local new_recent = require('recent')
local new_reservations = require('pooling.reservations')
local now_ms = require('clock')
local search = require('stickiness.search')

-- No file is looked for any longer; a frozen pod costs some of it once, and is then left alone.
local LOOK_MS_MAX = 800
-- One that answers does so in a few milliseconds. In a rollout several pods end at the same time, and say nothing any
-- more: with more patience for each of them nobody would come to the one that has the file. Who was short of CPU is
-- asked again.
local PATIENCE_MS = 120
-- Searches at a time; some more wait for these: a moment for what may be in vain, longer for what is there.
local SEARCHES_MAX = 32
local WAITING_MAX = 256
local HOPE_MS_MAX = 200
local WAIT_MS_MAX = 1000
-- How often one that waits looks, and how many more make it a millisecond longer.
local POLL_MS = 5
local WAITING_PER_MS = 8
-- The path of a file has no more bytes: that of a hashed name has a hundred.
local PATH_BYTES_MAX = 1024
-- What nobody has is not asked for again so soon, unless another revision has come.
local MISSING_MAX = 1024
local MISSING_MS = 10000
-- Who has a file is asked first.
local FOUND_MAX = 1024
local FOUND_MS = 60000
-- Searches in vain. A page whose revision has gone asks for its thirty files at once.
local EACH = { burst = 60, per_second = 10 }
local BURST_OF_ALL = 200
-- Of all pods of the fleet together, but some for each: a single pod of another revision may have to answer them all.
local PER_SECOND_OF_FLEET = 200
local PER_SECOND = { least = 5, most = 50 }

return function(peers, revisions)
  local missing, found = new_recent(MISSING_MAX, MISSING_MS), new_recent(FOUND_MAX, FOUND_MS)
  local last_found = nil
  -- Not a number: a search that is ended from outside would count for ever.
  local searching, waiting = new_reservations(LOOK_MS_MAX), new_reservations(WAIT_MS_MAX)
  local budget = new_budget(EACH, {
    burst = BURST_OF_ALL,
    per_second = function()
      return math.max(PER_SECOND.least, math.min(PER_SECOND.most, PER_SECOND_OF_FLEET // (1 + #peers.known())))
    end,
  })

  -- As it stands in the line of a request, which is sent on.
  local function path_of(txn)
    local path = txn.f:path()
    if path and #path <= PATH_BYTES_MAX and path:find("^/[%w%%._~!$&'()*+,;=:@/%[%]-]*$") then return path end
  end

  -- `spend()`: to be called before a round more.
  local function look(path, ends_ms, spend)
    local others, unknown, generation = revisions.others()
    local is_silent = false
    local function ask_for(ms_max)
      return function(peer)
        local left_ms = ends_ms - now_ms()
        if left_ms <= 0 then return nil end
        local answer, hand_over = peers.ask_file(peer, path, math.min(left_ms, ms_max))
        is_silent = is_silent or answer == nil
        return answer, hand_over
      end
    end
    local first = found:get(path, now_ms()) or last_found
    local peer, more, revision = search(others, unknown, first, ask_for(PATIENCE_MS))
    if not peer and is_silent then
      spend()
      peer, more, revision = search(others, unknown, first, ask_for(LOOK_MS_MAX))
    end
    local now = now_ms()
    if not peer then
      if more then missing:add(path, generation, now) end
      return nil
    end
    if revision then
      found:add(path, revision, now)
      last_found = revision
    end
    return peer, more
  end

  local function was_found(path) return found:get(path, now_ms()) ~= nil end

  -- Whether there may be one more search; what was found a moment ago needs no budget.
  local function may_search(path, client)
    local now = now_ms()
    return searching:count(now) < SEARCHES_MAX and (was_found(path) or budget:may(client, now))
  end

  -- The same, after a wait for those that go on: they may give their places back, or turn out not to have been in vain.
  local function has_turn(path, client)
    if may_search(path, client) then return true end
    local began = now_ms()
    if searching:count(began) == 0 or waiting:count(began) >= WAITING_MAX then return false end
    local place = waiting:add(client, began)
    local may, is_over
    repeat
      core.msleep(POLL_MS + waiting:count(now_ms()) // WAITING_PER_MS)
      local now = now_ms()
      may = may_search(path, client)
      is_over = searching:count(now) == 0 or now - began >= (was_found(path) and WAIT_MS_MAX or HOPE_MS_MAX)
    until may or is_over
    waiting:release(place)
    return may
  end

  local function is_missing(path)
    local _, _, generation = revisions.others()
    return missing:get(path, now_ms()) == generation
  end

  -- The pod and what to fetch it with; nil if nobody has it, or nobody is asked.
  local function find(path, client)
    local others, unknown = revisions.others()
    if next(others) == nil and #unknown == 0 then return nil end
    if is_missing(path) then
      counts.look('missing')
      return nil
    end
    if not has_turn(path, client) then
      counts.look('limited')
      return nil
    end
    -- Before, not after: others that begin meanwhile see it, and one that is ended from outside has paid.
    local spent = 0
    local function spend()
      budget:spend(client, now_ms())
      spent = spent + 1
    end
    spend()
    local turn = searching:add(client, now_ms())
    local ok, peer, hand_over = pcall(look, path, now_ms() + LOOK_MS_MAX, spend)
    searching:release(turn)
    if ok and peer then
      for _ = 1, spent do budget:refund(client, now_ms()) end
      counts.look('found')
      return peer, hand_over
    end
    counts.look('missing')
  end

  -- Sets txn.peer, txn.ticket and txn.proof if there is one.
  core.register_action('find_other_revision', { 'http-req' }, function(txn)
    local path = path_of(txn)
    if not path then return end
    local peer, hand_over = find(path, txn:get_var('txn.client') or txn.f:req_fhdr('X-Real-IP') or '')
    if not peer then return end
    txn:set_var('txn.peer', peer.address)
    txn:set_var('txn.ticket', hand_over[1])
    txn:set_var('txn.proof', hand_over[2])
  end)
end
