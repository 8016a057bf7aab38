-- What haproxy.cfg asks about requests that are to stay at a revision: those that name it, and those of people who have
-- got a page of it. docs/version-skew.md tells the rules.
local counts = require('stickiness.counts')
local decision = require('stickiness.decision')
local is_navigation = require('stickiness.navigation')
local live = require('live.values')
local state = require('canary.state')
local wall_ms = require('wall-clock')
local workers = require('workers')

-- Requests that one pod of another revision may have of this one. There may be few of them, and all the world may know
-- their name.
local EACH_MAX = 16
local COOKIE = 'corelane-rev'
local ALWAYS = 2

return function(handing_over, revisions, capacity, is_on)
  local own = revisions.own.revision

  local function canary_now(txn)
    if not state.is_there() then return nil end
    local share = state.share(wall_ms(txn) // 1000)
    return { revision = state.revision('canary'), stable = state.revision('stable'), share = share }
  end

  local function request_of(txn)
    local query = txn.f:urlp('dpl')
    return {
      headers = txn.f:req_fhdr_cnt('x-deployment-id'),
      header = txn.f:req_fhdr('x-deployment-id'),
      query = query and txn.c:url_dec(query, 1),
      cookie = txn.f:req_cook(COOKIE),
      is_navigation = is_navigation(txn),
    }
  end

  -- Whether it is rendered by that revision: here, or where it is led. A page that a person asks for anew can as well
  -- be of another revision, so it does not wait for one that has become small; what belongs to a page does.
  local function is_kept(txn, revision, request, by)
    if revision == own then
      if workers.alive() == 0 then return false end
      return capacity.free_slots(txn.f) > 0 or capacity.queue_length(txn.f) < live['queue-length-max']
    end
    local slot_only = by == 'cookie' and request.is_navigation
    return handing_over.lead(txn, revision, { slot_only = slot_only, each_max = EACH_MAX })
  end

  -- Sets txn.is_kept, and txn.side_server if a pod of another revision renders it.
  core.register_action('keep_revision', { 'http-req' }, function(txn)
    if not is_on or not own then return end
    local request = request_of(txn)
    local world = {
      named = revisions.named,
      lives = revisions.lives,
      has_cookie = live['sticky-cookie'] == ALWAYS,
      canary = canary_now(txn),
    }
    local revision, by = decision.of(request, world)
    if not revision then return end
    local kept = is_kept(txn, revision, request, by)
    if kept then txn:set_var('txn.is_kept', true) end
    if revision ~= own then counts.keep(by, kept) end
  end)

  -- Sets txn.new_revision for a page that tells its reader's browser where it is from.
  core.register_action('note_revision', { 'http-req' }, function(txn)
    if not is_on or not own or live['sticky-cookie'] ~= ALWAYS or not is_navigation(txn) then return end
    local revision = txn:get_var('txn.side_revision') or ('%010x'):format(own)
    if txn:get_var('txn.shown_revision') ~= revision then txn:set_var('txn.new_revision', revision) end
  end)
end
