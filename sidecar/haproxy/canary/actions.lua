-- What haproxy.cfg asks about a canary: which side a request is on, who renders it, and what has become of it.
-- docs/canary.md tells how a request finds its side.
local counts = require('canary.counts')
local decision = require('canary.decision')
local is_navigation = require('stickiness.navigation')
local judged = require('canary.judged')
local live = require('live.values')
local send_text = require('text-page')
local state = require('canary.state')
local wall_ms = require('wall-clock')
local workers = require('workers')

return function(handing_over, capacity)
  local next_place = decision.places(math.random(0, 9999), math.random)

  local function reader_of(txn)
    return {
      header = function(name) return txn.f:req_fhdr(name) end,
      cookie = function(name) return txn.f:req_cook(name) end,
      query = function(name)
        local value = txn.f:urlp(name)
        return value and txn.c:url_dec(value, 1)
      end,
      hash = function(text, seed) return txn.c:xxh32(text, seed) end,
    }
  end

  -- Whether this pod has a worker for what belongs to its own side, be it busy or stuck; as part of a canary a place in
  -- its queue as well: where that is full it must not refuse whom the stable side has room for.
  local function is_served_here(txn, side)
    if side ~= state.own_side() or workers.alive() == 0 then return false end
    return side == 'stable' or capacity.free_slots(txn.f) > 0 or capacity.queue_length(txn.f) < live['queue-length-max']
  end

  -- Whether a pod of that side takes it. The canary may be over since the request came.
  local function is_handed_over(txn, side)
    local revision = state.revision(side)
    return revision ~= nil and handing_over.lead(txn, revision, { guesses = true })
  end

  -- The side that serves it: the one that it belongs to, else what is left. A pod that is of neither is there for both.
  local function served_by(txn, side)
    if is_served_here(txn, side) then return side end
    if is_handed_over(txn, side) then return side end
    counts.fall_back(side)
    local own = state.own_side() or side
    if side == 'stable' or own == 'stable' then return own end
    return is_handed_over(txn, 'stable') and 'stable' or own
  end

  -- By whom a request is on its side: nobody if by chance, a client by his address. Where the address is that of a
  -- proxy, which many may have, it is the value of `key`; a cookie alone may be of anybody's making.
  local function who(txn, named)
    if not named then return judged.CHANCE end
    local client = txn:get_var('txn.canary_client') or named.is_key and named.name
    if not client or not named.is_compared then return judged.UNKNOWN end
    return ('%x'):format(txn.c:xxh64(client, 0))
  end

  -- Sets txn.side_server if another pod renders it, txn.judged if it counts, txn.place if it gets one.
  core.register_action('choose_side', { 'http-req' }, function(txn)
    local token = txn:get_var('txn.token')
    if txn:get_var('txn.is_second_try') then
      -- What has cost a worker of the canary must not cost another one, and its client gets a page.
      if token then counts.fail_unanswered(token) end
      served_by(txn, 'stable')
      return
    end
    local now_s = wall_ms(txn) // 1000
    local canary = {
      revision = state.revision('canary'),
      share = state.share(now_s),
      rules = state.rules,
      has_cookie = state.has_cookie(),
    }
    local side, is_assigned, place, named = decision.of(reader_of(txn), canary, next_place, math.random)
    if is_assigned then counts.assign(side) end
    if place and is_navigation(txn) then txn:set_var('txn.place', tostring(place)) end
    local served_side = served_by(txn, side)
    if not is_assigned then return end
    -- Who has been compared with others is so on his own side only.
    local by = served_side ~= side and named and judged.UNKNOWN or who(txn, named)
    local name = judged.name(served_side, by)
    txn:set_var('txn.judged', name)
    if token then counts.remember(token, name) end
  end)

  core.register_action('count_side_answer', { 'http-after-res' }, function(txn)
    local header = function(name) return txn.f:res_fhdr(name) end
    counts.answer(
      txn:get_var('txn.token'), txn:get_var('txn.judged'),
      txn.f:status(), header('X-Corelane-Error'), header('X-Corelane-Render-Ms')
    )
  end)

  core.register_action('count_lost_answer', { 'http-after-res' }, function(txn)
    counts.fail_unanswered(txn:get_var('txn.token'))
  end)

  local now = core.now()
  judged.start(('%d.%06d'):format(now.sec, now.usec))
  core.register_service('canary', 'http', function(applet) send_text(applet, judged.page()) end)
end
