-- Which revisions live beside this one, which pods they have, and which deployment each calls itself: what pods have
-- said of themselves. Nobody who only sends a request can add to it, so to look into it costs the same whatever he asks
-- for.
local drain = require('drain')
local new_index = require('pooling.revision-index')

-- How often one looks for pods that one does not know yet. While there is a canary a request for them may come at once.
local LEARN_MS = 1000
local LEARN_FOR_CANARY_MS = 200

-- `own`: { revision, deployment } of this pod; `canary`: canary/state.lua.
return function(peers, canary, own)
  local revisions = { own = own }
  local index, list, learned = nil, nil, nil
  local before = {} -- revisions that were there
  local generation = 0

  local function is_known(peer) return peer.known ~= nil and peer.revision_of == peer.known.identity end

  -- What is known at this moment; made anew when a pod has come, gone, or told.
  local function current()
    local known = peers.known()
    if index and known == list and learned == peers.learned() then return index end
    list, learned = known, peers.learned()
    index = new_index(known, is_known, own)
    for revision in pairs(index.by_revision) do
      if not before[revision] then generation = generation + 1 end
    end
    before = index.by_revision
    return index
  end

  -- Pods of a revision, and those of which one does not know it: lists to be put into another order, not to be changed.
  function revisions.pods_of(revision)
    local now = current()
    return now.by_revision[revision] or {}, now.unknown
  end

  -- The revision that calls itself so; nil if none does, or several do.
  function revisions.named(deployment) return current().by_deployment[deployment] or nil end

  -- Whether there is a pod of it, this one or another.
  function revisions.lives(revision) return revision == own.revision or current().by_revision[revision] ~= nil end

  -- Pods of each revision but this pod's own, by revision; pods that are not known; and a number that is another one
  -- when a revision has come.
  function revisions.others()
    local now = current()
    return now.others, now.unknown, generation
  end

  -- Gets to know pods; for a loop. Not in a drain: each new connection would hold a HAProxy that is to stop.
  function revisions.learn()
    core.msleep(canary.is_there() and LEARN_FOR_CANARY_MS or LEARN_MS)
    if drain.is_draining() then return end
    for _, peer in ipairs(peers.known()) do
      if not is_known(peer) then peers.ask_revision(peer) end
    end
  end

  return revisions
end
