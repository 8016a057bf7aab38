-- The home of a page: the pod that renders it for all (docs/cache.md). Each pod chooses by itself, among those that it
-- knows; where two differ for a moment, a page is rendered twice.
--
-- A home never asks another one, and what comes from peers never stands in the herd of this pod's own clients. So
-- nobody waits for himself, whoever takes whom for a home.
local drain = require('drain')
local now_ms = require('clock')
local purge_peers = require('cache.purge-peers')
local rendezvous = require('cache.rendezvous')

-- A pod that is only short of CPU must not lose its pages; a frozen one costs this once, and is shunned then.
local ANSWER_MS_MAX = 500
-- Of those that are of another revision, or drain: each is asked once, or once in a while.
local ASKS_MAX = 4
local PAUSE_MS = 1000

local homes = {}
-- What pooling.lua has: nothing where pods do not know each other.
local peers

local own = {} -- this pod, as the others see it
local names = {} -- hashes of addresses
local names_count = 0
local NAMES_MAX = 1024

local function name_of(address)
  if not names[address] then
    if names_count >= NAMES_MAX then names, names_count = {}, 0 end
    names[address], names_count = rendezvous.hash(address), names_count + 1
  end
  return names[address]
end

-- Whether it may have pages of ours. A process never changes its revision.
local function is_candidate(peer, now)
  local is_other = peer.known and peer.other_revision == peer.known.identity
  return not is_other and now >= (peer.no_pages_until or 0)
end

local list, list_of, list_at = {}, nil, -math.huge

-- Who may be a home, this pod among them if others can know it.
local function candidates()
  local known, now = peers.known(), now_ms()
  if known == list_of and now == list_at then return list end
  list, list_of, list_at = {}, known, now
  for _, peer in ipairs(known) do
    if not peers.own_addresses[peer.address] and is_candidate(peer, now) then
      peer.name = name_of(peer.address)
      list[#list + 1] = peer
    end
  end
  if drain.is_draining() then return list end
  for address in pairs(peers.own_addresses) do
    if peers.at(address) then
      own.name = name_of(address)
      list[#list + 1] = own
      break
    end
  end
  return list
end

-- Whether this pod renders the page by itself: it is the home, or there is no other one.
function homes.is_here(url)
  if not peers then return true end
  local owner = rendezvous.owner(rendezvous.hash(url), candidates(), 'name')
  return owner == nil or owner == own
end

-- Asks the home of a page: gives it, and what to hand the request over with; nothing if it is to be rendered here.
function homes.find(url)
  if not peers then return nil end
  local hash = rendezvous.hash(url)
  for _ = 1, ASKS_MAX do
    local owner = rendezvous.owner(hash, candidates(), 'name')
    if owner == nil or owner == own then return nil end
    -- A home that lacks a purge of this pod could return the old page.
    if not purge_peers.catch_up(owner) then return nil end
    local answer, hand_over = peers.ask(owner, 'page', ANSWER_MS_MAX)
    if answer == 'yes' then return owner, hand_over end
    if answer == 'other' then
      owner.other_revision = owner.known and owner.known.identity
    elseif answer == 'none' then
      owner.no_pages_until = now_ms() + PAUSE_MS
    else
      -- It is full, or has not answered, and is left alone for a while.
      return nil
    end
    list_at = -math.huge
  end
end

-- It had no page although it had said so: not in time, or not as a home.
function homes.shun(address)
  local peer = peers and peers.at(address)
  if peer then peers.eject(peer) end
end

-- Requests that are at a home: { server, peer, missed } by the number of their place. For heartbeats.
homes.slots = {}

function homes.start(all)
  peers = all
  core.register_task(function()
    for name, server in pairs(core.backends['home'].servers) do
      local number = tonumber(name:match('^home%-(%d+)$'))
      if number then homes.slots[number] = { server = server, missed = 0 } end
    end
  end)
end

return homes
