-- Pods share their work: a request that finds no free slot here waits in backend "line" as ever, and meanwhile this pod
-- asks others, a random one at a time, for a free slot. One that says yes keeps the slot for a moment; the server
-- "borrowed-N" of "line" gets its address and takes exactly one request, the one that has waited longest. One that says
-- no remembers who asked, and offers the next slot that becomes free and that it has no use for.
-- docs/pooling.md tells why it is done like this; pooling/ has the parts. Arguments (haproxy.cfg, lua-load): key=value.

local group = require('pooling.group')
local settings = require('settings')(
  'pooling.lua',
  { ... },
  { 'any-revision', 'body-max', 'canary', 'deployment', 'hand-over', 'port', 'revision' },
  -- Looks for files of other revisions with own-revision, for pages of the same one with pages-of; purges=1: there is a
  -- cache.
  { revision = true, ['any-revision'] = true, deployment = true, ['own-revision'] = true, ['pages-of'] = true }
)

function settings.group() return group(settings) end

-- Not by the clock, which others know as well: by chance a request is on a side of a canary.
do
  local random = assert(io.open('/dev/urandom', 'rb'))
  math.randomseed(string.unpack('jj', random:read(16)))
  random:close()
end

local borrowed = {} -- by number + 1: { server, peer, hand_over, opened_at, missed }
local figures = require('metrics.figures')
local homes = settings['pages-of'] and require('cache.homes')
local forever = require('pooling.forever')
local peers = require('pooling.peers')(settings)
local capacity = require('pooling.capacity')(settings, borrowed)
local lending = require('pooling.lending')(peers, capacity)
local offering = require('pooling.offering')(peers, capacity, lending)
local borrowing = require('pooling.borrowing')(settings, peers, capacity, borrowed)
local canary = require('canary.state')
canary.start(settings['revision'], settings['hand-over'] == 1 and settings['canary'] == 1)
local own = { revision = canary.own_revision(), deployment = settings['deployment'] }
local revisions = settings['hand-over'] == 1 and require('pooling.revisions')(peers, canary, own)
local handing_over = revisions and require('pooling.handing-over')(peers, revisions)
local send_heartbeats = require('pooling.heartbeats')(peers, borrowed, {
  homes and homes.slots or {}, handing_over and handing_over.slots or {},
})
local look_at_queue = require('pooling.readiness')(peers, capacity)
require('pooling.answering')(settings, peers, capacity, lending, offering, borrowing)
if settings['own-revision'] then require('stickiness.elsewhere')(peers, revisions) end
if homes then homes.start(peers) end
if settings['purges'] == 1 then require('cache.purge-peers').start(peers) end
if handing_over then
  require('canary.actions')(handing_over, capacity)
  require('stickiness.actions')(handing_over, revisions, capacity, settings['canary'] == 1)
end

-- DNS has this pod, too.
function figures.peers_known()
  local count = 0
  for _, peer in ipairs(peers.known()) do
    if not peers.own_addresses[peer.address] then count = count + 1 end
  end
  return count
end

local function watch_borrowed()
  send_heartbeats()
  peers.close_unused()
  -- A request can come into the queue without an arrival: one that could not be handed over is put back.
  if capacity.waiting() > 0 then borrowing.wake() end
end

core.register_task(function()
  for name, server in pairs(core.backends['line'].servers) do
    if name:match('^borrowed%-') then borrowed[#borrowed + 1] = { server = server, opened_at = -math.huge, missed = 0 } end
  end
  if settings['hand-over'] ~= 1 then return end
  forever(borrowing.ask_again)
  forever(offering.offer_slots)
  forever(watch_borrowed)
  forever(revisions.learn)
end)
forever(look_at_queue)
