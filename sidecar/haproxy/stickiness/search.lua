-- Looks for a file in pods of other revisions, one after the other: one pod of each, another one of it where that does
-- not answer, and at last those of which nobody knows the revision. Computes, and asks by what it is given.
local some = require('pooling.some')

local ASKS_MAX = 8
-- Of one revision: all of its pods have the same files.
local PODS_MAX = 2

-- Revisions in the order in which they are asked: who had the last file may well have the next one.
local function in_order(others, first)
  local list = {}
  for revision in pairs(others) do list[#list + 1] = revision end
  table.sort(list)
  for place, revision in ipairs(list) do
    if revision == first then
      list[1], list[place] = list[place], list[1]
    end
  end
  return list
end

-- `others`: lists of pods by revision; `unknown`: further pods; `first`: the revision to begin with; `ask(peer)`: "yes"
-- and what to fetch it with, "no", or whatever else; nil when there is no time left.
-- Gives the pod, what to fetch it with, and its revision (nil: it is not known); or nil, and whether all revisions have
-- said that they have not got it.
return function(others, unknown, first, ask)
  local asks = 0
  -- What a pod says; or nil where nobody may be asked any more.
  local function put(peer)
    if asks == ASKS_MAX then return nil end
    asks = asks + 1
    return ask(peer)
  end

  local is_sure = #unknown == 0
  for _, revision in ipairs(in_order(others, first)) do
    local next_pod, answer, hand_over = some(others[revision]), nil, nil
    for _ = 1, PODS_MAX do
      local pod = next_pod()
      if not pod then break end
      answer, hand_over = put(pod)
      if answer == 'yes' then return pod, hand_over, revision end
      if answer == 'no' then break end
    end
    is_sure = is_sure and answer == 'no'
  end
  for pod in some(unknown) do
    local answer, hand_over = put(pod)
    if answer == 'yes' then return pod, hand_over, nil end
    if asks == ASKS_MAX then break end
  end
  return nil, is_sure
end
