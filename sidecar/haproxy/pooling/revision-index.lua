-- Pods by what they have said of themselves. Computes only.

-- `own`: { revision, deployment }; `peers`: those that there are, each with its `revision` and perhaps a `deployment`
-- once `is_known(peer)`, or `same_of` a process that has said that it is of the own one. Gives by_revision (lists of
-- peers), others (the same without the own one), unknown (a list) and by_deployment (a revision, or false where several
-- call themselves so).
return function(peers, is_known, own)
  local index = { by_revision = {}, others = {}, unknown = {}, by_deployment = {} }

  local function name(deployment, revision)
    if not deployment then return end
    local before = index.by_deployment[deployment]
    if before == nil then before = revision end
    index.by_deployment[deployment] = before == revision and revision
  end

  if own.revision then name(own.deployment, own.revision) end
  for _, peer in ipairs(peers) do
    -- Without a cluster a revision may have any name.
    if not is_known(peer) or not peer.revision then
      local is_same = peer.known and peer.same_of == peer.known.identity
      if not is_same then index.unknown[#index.unknown + 1] = peer end
    else
      local list = index.by_revision[peer.revision] or {}
      list[#list + 1] = peer
      index.by_revision[peer.revision] = list
      if peer.revision ~= own.revision then index.others[peer.revision] = list end
      name(peer.deployment, peer.revision)
    end
  end
  return index
end
