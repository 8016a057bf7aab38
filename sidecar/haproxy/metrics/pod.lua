-- What HAProxy itself says of the pod, as of now.
local canary = require('canary.state')
local counts = require('canary.counts')
local figures = require('metrics.figures')
local stickiness = require('stickiness.counts')
local without_slot = require('without-slot')
local workers = require('workers')

local WAITING = { 'line', 'late', 'workers' }

return function(settings)
  local worker_servers = {}

  -- HAProxy makes a new object for each server whenever one walks through them.
  core.register_init(function()
    for name, server in pairs(core.backends['workers'].servers) do
      if name:match('^worker%-') then worker_servers[name] = server end
    end
  end)

  local function busy()
    local count = 0
    for name, server in pairs(worker_servers) do
      if server:get_cur_sess() > without_slot.of(name) then count = count + 1 end
    end
    return count
  end

  -- All that waits in this pod, wherever it does.
  local function queue_length()
    local length = core.frontends['waiting-room']:get_stats().scur or 0
    for _, name in ipairs(WAITING) do
      local backend = core.backends[name]
      if backend then length = length + (backend:get_stats().qcur or 0) end
    end
    -- Those of the other side of a canary, and WebSockets, wait for a slot of this pod.
    return length + core.backends['line'].servers['slots']:get_pend_conn()
  end

  -- `out` as nginx says it; nil if it does not answer. `watched`: workers whose runtime does.
  return function(page, watched, out)
    local up = workers.up()
    page.describe('corelane_workers', 'gauge', 'Workers of the pod; busy: with a request; watched: with a runtime that answers.')
    for _, state in ipairs({ { 'up', up }, { 'down', settings['workers'] - up }, { 'busy', busy() }, { 'watched', watched } }) do
      page.sample('corelane_workers', '{state="' .. state[1] .. '"}', state[2])
    end
    page.describe('corelane_queue_length', 'gauge', 'Requests that wait for a worker.')
    page.sample('corelane_queue_length', '', queue_length())
    if figures.peers_known then
      page.describe('corelane_peers_known', 'gauge', 'Other pods that this one knows and that have answered when they were asked last.')
      page.sample('corelane_peers_known', '', figures.peers_known())
    end
    if settings['hand-over'] == 1 then
      local name = 'corelane_requests_handed_over_total'
      page.describe(name, 'counter', 'Requests rendered by another pod (out), and for another pod (in).')
      if out then page.sample(name, '{direction="out"}', out) end
      page.sample(name, '{direction="in"}', figures.handed_over)
      counts.add(page, canary.is_there())
      stickiness.add(page)
    end
  end
end
