-- Whether a pod whose queue is full leaves the Service for a while (readiness.shedWhenFull).

local canary = require('canary.state')
local live = require('live.values')
local now_ms = require('clock')

-- The queue has been full for so long; another pod had room at most so long ago; how often one looks.
local SAMPLE_MS = 250
local FULL_MS = 2000
local ROOM_MS = 5000
local LOOK_MS = 500

return function(peers, capacity)
  local full_since = nil
  local is_full = false
  local looked_at = -math.huge

  -- In a canary a request has its side wherever it comes in: that the other side has room helps nobody who waits here.
  local function peers_of_this_side()
    if not canary.is_there() then return peers.known() end
    local list = {}
    for _, peer in ipairs(peers.known()) do
      if peer.revision == canary.own_revision() then list[#list + 1] = peer end
    end
    return list
  end

  -- The peers that had room when they were asked last, a while ago at most.
  local function peers_with_room()
    local list, now = {}, now_ms()
    for _, peer in ipairs(peers_of_this_side()) do
      if now - peer.room_at <= ROOM_MS then list[#list + 1] = peer end
    end
    return list
  end

  -- Whether new connections had better go to another pod. Never when no other is known to have room: a fleet that is
  -- full everywhere stays ready everywhere.
  core.register_fetches('corelane_shed', function()
    return live['shed'] == 1 and is_full and #peers_with_room() > 0
  end)

  -- Looks at the queue; for a loop.
  return function()
    core.msleep(SAMPLE_MS)
    if live['shed'] ~= 1 then
      full_since, is_full = nil, false
      return
    end
    local length_max = live['queue-length-max']
    local length = capacity.waiting() + capacity.waiting_here() + (core.backends['workers']:get_stats().qcur or 0)
      + (core.frontends['waiting-room']:get_stats().scur or 0)
    local now = now_ms()
    if length >= length_max and length > 0 then
      full_since = full_since or now
      if now - full_since >= FULL_MS then is_full = true end
    else
      full_since = nil
      if 2 * length <= length_max then is_full = false end
    end
    -- Only a pod that is in trouble needs to know how the others are. One that had room may be full by now.
    if full_since and now - looked_at >= LOOK_MS then
      looked_at = now
      local list = peers_with_room()
      if #list == 0 then list = peers_of_this_side() end
      if #list > 0 then peers.ask(list[math.random(#list)], 'look') end
    end
  end
end
