local new_index = require('pooling.revision-index')
local some = require('pooling.some')

local OWN = { revision = 1, deployment = 'mine' }
local function peer(revision, deployment) return { revision = revision, deployment = deployment, is_known = true } end
local function index_of(peers, own)
  return new_index(peers, function(one) return one.is_known end, own or OWN)
end

test('pods by revision, others without the own one', function()
  local unknown = { is_known = false, revision = 2 }
  local index = index_of({ peer(1, 'mine'), peer(2, 'theirs'), peer(2, 'theirs'), unknown, peer(nil) })
  equal(#index.by_revision[1], 1)
  equal(#index.by_revision[2], 2)
  equal(index.others[1], nil)
  equal(#index.others[2], 2)
  equal(#index.unknown, 2)
  -- One that has said that it is of this revision, and one that was another process when it did.
  local same = { is_known = true, known = { identity = 'a' }, same_of = 'a' }
  local other = { is_known = true, known = { identity = 'b' }, same_of = 'a' }
  equal(#index_of({ same, other }).unknown, 1)
end)

test('a name leads to a revision, if only one has it', function()
  local index = index_of({ peer(1, 'mine'), peer(2, 'theirs'), peer(3, 'both'), peer(4, 'both'), peer(5), peer(6, 'mine') })
  equal(index.by_deployment['theirs'], 2)
  equal(index.by_deployment['both'], false)
  equal(index.by_deployment['mine'], false)
  equal(index.by_deployment['nobody'], nil)
  equal(index_of({ peer(1, 'mine') }).by_deployment['mine'], 1)
  equal(index_of({ peer(3, 'x'), peer(4, 'x'), peer(3, 'x') }).by_deployment['x'], false)
end)

test('without a revision of its own a pod has no name either', function()
  equal(index_of({ peer(2, 'none') }, { deployment = 'none' }).by_deployment['none'], 2)
end)

test('each once, in any order', function()
  local list = {}
  for number = 1, 100 do list[number] = number end
  local seen, count, firsts = {}, 0, {}
  for number in some(list) do
    if seen[number] then error(number .. ' again') end
    seen[number], count = true, count + 1
  end
  equal(count, 100)
  for _ = 1, 2000 do firsts[some(list)()] = true end
  local different = 0
  for _ in pairs(firsts) do different = different + 1 end
  if different < 90 then error('only ' .. different .. ' come first') end
  equal(some({})(), nil)
end)

test('a few of many cost a few steps', function()
  local list, reads = {}, 0
  local watched = setmetatable({}, {
    __len = function() return 100000 end,
    __index = function(_, key) reads = reads + 1 return list[key] or key end,
    __newindex = function(_, key, value) list[key] = value end,
  })
  local next_one = some(watched)
  for _ = 1, 4 do next_one() end
  if reads > 16 then error(reads .. ' reads') end
end)

test('what a pod tells counts at once, and a revision that comes is news', function()
  local list, learned = {}, 0
  local peers = { known = function() return list end, learned = function() return learned end }
  local revisions = require('pooling.revisions')(peers, { is_there = function() return false end }, OWN)
  local function news() return select(3, revisions.others()) end
  local function tells(revision, deployment)
    local one = peer(revision, deployment)
    one.known, one.revision_of = { identity = 'a' }, 'a'
    return one
  end
  local before = news()
  list = { tells(1, 'mine') }
  equal(news(), before + 1)
  list = { list[1], tells(2, 'theirs') }
  equal(news(), before + 2)
  equal(revisions.named('theirs'), 2)
  equal(revisions.lives(2), true)
  -- Another pod of it is none, nor is one that has not told yet.
  list = { list[1], list[2], tells(2, 'theirs'), { known = { identity = 'b' } } }
  equal(news(), before + 2)
  equal(select(2, revisions.others())[1], list[4])
  -- It tells.
  list[4].revision, list[4].revision_of, learned = 3, 'b', 1
  equal(news(), before + 3)
  -- All of a revision go, and it comes back.
  list = { list[1] }
  equal(revisions.lives(2), false)
  equal(revisions.lives(1), true)
  list = { list[1], tells(2, 'theirs') }
  equal(news(), before + 4)
end)
