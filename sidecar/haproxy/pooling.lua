-- Pods share their work: a request that finds no free slot here waits in backend "line" as ever, and meanwhile this pod
-- asks others, a random one at a time, for a free slot. One that says yes keeps the slot for a moment; the server
-- "borrowed-N" of "line" gets its address and takes exactly one request, the one that has waited longest. One that says
-- no remembers who asked, and offers the next slot that becomes free and that it has no use for.
-- docs/pooling.md tells why it is done like this; pooling/ has the parts. Arguments (haproxy.cfg, lua-load): key=value.

local live = require('live.values')
local settings = require('settings')(
  'pooling.lua',
  { ... },
  { 'any-revision', 'hand-over', 'port', 'revision' },
  -- Looks for files of other revisions with own-revision, for pages of the same one with pages-of.
  { revision = true, ['any-revision'] = true, ['own-revision'] = true, ['pages-of'] = true }
)

-- Pods that say the same share their work.
function settings.group()
  return live['across-revisions'] == 1 and settings['any-revision'] or settings['revision']
end

math.randomseed(core.now().usec, core.now().sec)

local borrowed = {} -- by number + 1: { server, peer, hand_over, opened_at, missed }
local homes = settings['pages-of'] and require('cache.homes')
local forever = require('pooling.forever')
local peers = require('pooling.peers')(settings)
local capacity = require('pooling.capacity')(settings, borrowed)
local lending = require('pooling.lending')(peers, capacity)
local offering = require('pooling.offering')(peers, capacity, lending)
local borrowing = require('pooling.borrowing')(settings, peers, capacity, borrowed)
local send_heartbeats = require('pooling.heartbeats')(peers, borrowed, homes and homes.slots or {})
local look_at_queue = require('pooling.readiness')(peers, capacity)
require('pooling.answering')(settings, peers, capacity, lending, offering, borrowing)
if settings['own-revision'] then require('pooling.other-revision')(peers) end
if homes then homes.start(peers) end

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
end)
forever(look_at_queue)
