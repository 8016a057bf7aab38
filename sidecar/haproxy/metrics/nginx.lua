-- The series of nginx (sidecar/nginx/metrics.c, cache.c, spans.c). While its container is away, a program of the pod
-- may listen in its place. That program must not add series: Prometheus keeps each series that it has ever seen.
local REASONS = {
  '',
  'queue-full',
  'queue-timeout',
  'no-worker',
  'render-timeout',
  'worker-died',
  'worker-stuck',
  'asset-not-found',
  'bad-request',
  'bad-response',
  'bodies-full',
  'body-too-large',
  'body-too-slow',
  'class-full',
  'class-queue-timeout',
  'class-timeout',
  'client-limit',
  'deadline',
  'draining',
  'head-too-large',
  'heads-full',
  'poison',
  'precondition-failed',
  'proxy-down',
  'proxy-timeout',
  'range-not-satisfiable',
  'render-failed',
  'requests-full',
  'response-too-slow',
  'websockets-full',
  'other',
}
local CODES = { '1xx', '2xx', '3xx', '4xx', '5xx', 'other' }
local BOUNDS = { '0.025', '0.05', '0.1', '0.25', '0.5', '1', '2.5', '5', '10', '30', '+Inf' }
local TOLD = { 'told', 'limited', 'untold' }
local RESULTS = { 'hit', 'waited', 'stale', 'miss', 'expired', 'shared', 'pass', 'bypass' }

local function labels_of(name, values)
  local all = {}
  for _, value in ipairs(values) do all['{' .. name .. '="' .. value .. '"}'] = true end
  return all
end

local of_requests = {}
for _, code in ipairs(CODES) do
  for _, reason in ipairs(REASONS) do of_requests['{code="' .. code .. '",reason="' .. reason .. '"}'] = true end
end
local of_histograms = labels_of('le', BOUNDS)
of_histograms[''] = true

-- By family: the labels that its samples may have.
local FAMILIES = {
  corelane_requests_total = of_requests,
  corelane_request_queue_duration_seconds = of_histograms,
  corelane_request_render_duration_seconds = of_histograms,
  corelane_request_first_byte_duration_seconds = of_histograms,
  corelane_request_duration_seconds = of_histograms,
  corelane_cache_requests_total = labels_of('result', RESULTS),
  corelane_span_records_total = labels_of('result', TOLD),
}
-- It has counted no more, whatever it says: a number that is none costs the page.
local OUT = '\ncorelane_requests_handed_over_total{direction="out"} (' .. ('%d?'):rep(15) .. ')\n'

local nginx = {}

-- Whether its page may have such a sample.
function nginx.knows(family, labels) return FAMILIES[family] ~= nil and FAMILIES[family][labels] == true end

-- Adds what is on its page.
function nginx.add(page, text)
  page.add(text, '', function(name) return FAMILIES[name] ~= nil end, nginx.knows)
end

-- How many requests other pods have answered; nil if it does not say.
function nginx.handed_over(text)
  local count = text:match(OUT)
  return count ~= '' and count or nil
end

return nginx
