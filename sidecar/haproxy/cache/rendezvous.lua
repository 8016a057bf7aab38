-- Whose a text is, of several: the highest of all hashes (rendezvous hashing). All who know the same names agree,
-- whatever their order; where one comes or goes, nothing moves but what is its own. Computes only.
local rendezvous = {}

-- FNV-1a of 64 bits, whose bits each change half of the others only after it is mixed.
function rendezvous.hash(text)
  local hash = 0xcbf29ce484222325
  for index = 1, #text do hash = (hash ~ text:byte(index)) * 0x100000001b3 end
  return hash
end

-- What the finalizer of MurmurHash3 does.
local function mixed(hash)
  hash = (hash ~ (hash >> 33)) * 0xff51afd7ed558ccd
  hash = (hash ~ (hash >> 33)) * 0xc4ceb9fe1a85ec53
  return hash ~ (hash >> 33)
end

-- The candidate whose it is, of those that have the hash of their name in `field`; nil of none. Two that have the same
-- hash nobody can tell apart: a name counts once.
function rendezvous.owner(hash, candidates, field)
  local best, best_weight
  for _, candidate in ipairs(candidates) do
    local weight = mixed(hash ~ mixed(candidate[field]))
    if not best or math.ult(best_weight, weight) then best, best_weight = candidate, weight end
  end
  return best
end

return rendezvous
