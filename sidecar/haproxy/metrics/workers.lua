-- What the supervisors say of their workers. Their pages come from the user's containers, so nothing in them is
-- trusted: of the few figures that everybody gets only the numbers are theirs.
local exposition = require('metrics.exposition')
local supervisors = require('supervisors')

local workers = {}

-- 15 kB are usual.
local PAGE_BYTES_MAX = 256 * 1024
local FAMILIES_MAX = 100

-- Each is one series of a worker, or one for each value of the label; `occurs`: only of those that are not 0.
-- operator/gen/metrics/pod.ts has the same for people.
local FEW = {
  { 'corelane_worker_up', 'gauge', 'Whether the worker takes requests.' },
  {
    'corelane_worker_restarts_total',
    'counter',
    'Restarts of the worker process.',
    label = 'reason',
    values = { 'exit', 'error', 'signal', 'stalled', 'recycled', 'abandoned' },
    occurs = true,
  },
  { 'corelane_worker_stalls_total', 'counter', 'Times that the event loop was declared stuck.' },
  { 'corelane_worker_crash_looping', 'gauge', 'Whether the worker ends again and again.' },
  { 'corelane_worker_cpu_seconds_total', 'counter', 'CPU time of the process.' },
  { 'corelane_worker_resident_memory_bytes', 'gauge', 'Resident memory of the process.' },
  { 'corelane_worker_event_loop_active_seconds_total', 'counter', 'Time that the event loop was busy.' },
  { 'corelane_worker_event_loop_idle_seconds_total', 'counter', 'Time that it waited for work.' },
  {
    'corelane_worker_heap_space_used_bytes',
    'gauge',
    'Bytes in use, by heap space.',
    label = 'space',
    values = { 'old' },
  },
  {
    'corelane_worker_gc_seconds_total',
    'counter',
    'Time in garbage collections.',
    label = 'kind',
    values = { 'minor', 'major' },
  },
  {
    'corelane_worker_spans_total',
    'counter',
    'Spans of the pod, by what has become of them.',
    label = 'result',
    values = { 'exported', 'failed', 'full', 'lost', 'invalid' },
    occurs = true,
  },
}

local names = {}
for i, few in ipairs(FEW) do names[i] = few[1] end
local ONLY = '?only=' .. table.concat(names, ',')

-- The page of a worker; nil if it does not answer. So a pod of 64 workers is not 470 kB to read for every scrape.
function workers.fetch(index, has_detail, ms_max)
  local reply = supervisors.get(index, '/metrics' .. (has_detail and '' or ONLY), ms_max)
  local body = reply and reply.body
  return body and #body <= PAGE_BYTES_MAX and body or nil
end

local function own_label(index) return 'worker="' .. index .. '"' end

-- Adds the few figures of all workers. `pages` is by number of the worker.
local function add_few(page, pages)
  local values = {}
  for index = 0, supervisors.count - 1 do
    exposition.read(pages[index] or '', own_label(index), function(name, labels, value)
      values[name .. labels] = values[name .. labels] or value
    end)
  end
  for _, few in ipairs(FEW) do
    local name = few[1]
    page.describe(name, few[2], few[3])
    for index = 0, supervisors.count - 1 do
      for _, label in ipairs(few.values or { '' }) do
        local more = few.label and ',' .. few.label .. '="' .. label .. '"' or ''
        local labels = '{' .. own_label(index) .. more .. '}'
        local value = values[name .. labels]
        if value and not (few.occurs and tonumber(value) == 0) then page.sample(name, labels, value) end
      end
    end
  end
end

-- Adds all figures of all workers.
local function add_all(page, pages)
  local accepted, count = {}, 0
  local function accepts(name)
    if not accepted[name] and count < FAMILIES_MAX and name:find('^corelane_worker_') then
      accepted[name] = true
      count = count + 1
    end
    return accepted[name]
  end
  for index = 0, supervisors.count - 1 do
    if pages[index] then page.add(pages[index], own_label(index), accepts) end
  end
end

function workers.add(page, pages, has_detail)
  if has_detail then add_all(page, pages) else add_few(page, pages) end
end

return workers
