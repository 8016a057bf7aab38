-- A request whose worker has died: why, and its second try. Arguments (haproxy.cfg, lua-load): key=number; first-port is 0 where workers
-- have no supervisor.

-- Workers that die together (a signal to all, no memory) do so within some 0.1 s. A second try that meets the next of
-- them is lost, so it waits until none has died for so long, but not for one that dies again and again.
local CALM_MS = 100
local CALM_WAIT_MS_MAX = 1000
local CALM_LOOK_MS = 10
-- A supervisor answers within a millisecond or two, but on a machine that stalls it may get no CPU for long. The client waits
-- for an answer meanwhile.
local BEGUN_MS_MAX = 1000

-- A kill by the watchdog has been noted before it: the answer is there at once, or the supervisor is in trouble as well, or gets no CPU
-- [measured: more than 0.5 s where 10 processes want 2 cores].
local WHY_MS_MAX = 1000

-- A supervisor wants to see that no program has been made to fetch its pages.
local MEANT = { ['X-Corelane-Runtime'] = { 'true' } }

local settings = corelane_settings('second-tries.lua', { ... }, { 'first-port', 'places' })

-- Requests of a worker, or verdicts, that are remembered: more than a worker may have at a time, and some that it refused.
local PLACES = settings['places']

-- Whom HAProxy has given a request to. The token is nginx' name for it, the same in both tries, and nobody else's.
local sent = {} -- by token: { worker, place, ms }, of the worker that had it last
local tokens = {} -- by the worker's number (text): the latest PLACES of them, and `place`, that of the last one

-- In a server line: called when HAProxy takes or opens a connection for a request, with its token, and the name of a connection that nobody has used,
-- if it is to have one. Gives the name of the connection.
core.register_converters('corelane_sent', function(request, worker)
  local token, fresh = request:match('^([^/]*)/?(.*)$')
  if token ~= '' then
    local own = tokens[worker] or { place = 0 }
    tokens[worker] = own
    local place = own.place % PLACES + 1
    local old = own[place] and sent[own[place]]
    if old and old.worker == worker and old.place == place then sent[own[place]] = nil end
    own.place, own[place] = place, token
    sent[token] = { worker = worker, place = place, ms = corelane_now_ms() }
  end
  return fresh == '' and 'any' or fresh
end)

-- Another pod has it: what became of it, no supervisor here can know.
core.register_converters('corelane_sent_away', function(token)
  sent[token] = nil
  return 'any'
end)

-- What is known of requests whose first try has got no answer: token -> whether somebody knows that it was not begun.
local verdicts, verdict_tokens, verdict_place = {}, {}, 0

core.register_action('note_verdict', { 'http-res' }, function(txn)
  local token = txn:get_var('txn.token')
  if not token then return end
  verdict_place = verdict_place % PLACES + 1
  local old = verdict_tokens[verdict_place]
  if old then verdicts[old] = nil end
  verdict_tokens[verdict_place] = token
  -- A bool comes as a number.
  verdicts[token] = txn:get_var('txn.unbegun') ~= nil
end)

local function deaths()
  local count = 0
  for _, server in pairs(core.backends['workers'].servers) do count = count + (server:get_stats().chkdown or 0) end
  return count
end

local calm_at_ms = 0
local is_watching = false

-- One for all that wait: figures of servers are dear.
local function watch_deaths()
  local before = deaths()
  while corelane_now_ms() < calm_at_ms do
    core.msleep(CALM_LOOK_MS)
    local now = deaths()
    if now ~= before then calm_at_ms = corelane_now_ms() + CALM_MS end
    before = now
  end
  is_watching = false
end

-- Holds the second try of a request. That it comes tells of a death, which HAProxy may see later.
core.register_action('wait_until_calm', { 'http-req' }, function()
  local begin_ms = corelane_now_ms()
  calm_at_ms = begin_ms + CALM_MS
  if not is_watching then
    is_watching = true
    core.register_task(watch_deaths)
  end
  while corelane_now_ms() < calm_at_ms and corelane_now_ms() - begin_ms < CALM_WAIT_MS_MAX do core.msleep(CALM_LOOK_MS) end
end)

-- Asks the supervisor of a worker that has died: its reply, or nil.
local function ask_supervisor(worker, id, page, query, ms_max)
  local index = tonumber((worker or ''):match('^worker%-(%d+)$'))
  if settings['first-port'] == 0 or not index or not id or not id:match('^[%w._-]+$') then return nil end
  local url = 'http://127.0.0.1:' .. settings['first-port'] + index .. page .. id .. query
  local ok, reply = pcall(function() return core.httpclient():get({ url = url, headers = MEANT, timeout = ms_max }) end)
  return ok and reply and reply.status == 200 and reply or nil
end

local function header(reply, name)
  local values = reply.headers[name]
  return values and (values[0] or values[1])
end

-- If the watchdog has killed the worker with this request: the place that it was stuck in, and how many requests the worker had.
-- Global: quarantine.lua wants to know as well.
function corelane_why_it_died(worker, id)
  local reply = ask_supervisor(worker, id, '/why/', '', WHY_MS_MAX)
  local place = reply and header(reply, 'x-corelane-stuck')
  if not place then return nil end
  return place, math.max(1, tonumber(header(reply, 'x-corelane-stuck-requests')) or 1)
end

-- Sets txn.stuck, to the place, if the watchdog has killed the worker because of this request. Where the worker had more than one, nobody
-- knows whose fault it was: one that would be given to another worker is, once.
local function ask_why_it_died(txn)
  local worker, url = txn:get_var('txn.died'), txn:get_var('txn.url')
  local place, requests = corelane_why_it_died(worker, txn:get_var('txn.id'))
  if not place then return end
  if corelane_note_kill and url then corelane_note_kill(url, tostring(txn:get_var('txn.client')), worker, requests) end
  if requests == 1 or txn:get_var('txn.only_once') or txn:get_var('txn.is_second_try') then txn:set_var('txn.stuck', place) end
end
core.register_action('ask_why_it_died', { 'http-res' }, ask_why_it_died)

-- A worker (txn.died) has died with a request that may not be rendered twice, or has closed its connection. Its supervisor knows whether it was begun, and
-- has a worker that lives promise that it never begins this try; if it was not, txn.unbegun is set. No answer, or another one than "no", sets nothing.
local function ask_whether_begun(txn, came_ms)
  if not came_ms then return end
  local age_ms = math.max(0, corelane_now_ms() - came_ms)
  local query = '?ms=' .. age_ms .. '&try=' .. (txn:get_var('txn.token') or '')
  -- nginx' own name of the request where there is one: clients give several requests one id.
  local name = txn:get_var('txn.token') or txn:get_var('txn.id')
  local reply = ask_supervisor(txn:get_var('txn.died'), name, '/begun/', query, BEGUN_MS_MAX)
  if reply and reply.body == 'no\n' then txn:set_var('txn.unbegun', true) end
end
core.register_action('ask_whether_begun', { 'http-res' }, function(txn)
  ask_whether_begun(txn, tonumber(txn:get_var('txn.came_ms')))
end)

-- A second try: what became of the first. Either HAProxy has answered that itself (a verdict), or the first went over a kept connection, whose
-- end HAProxy passes on without a word: then it was in the hands of the worker that had it last, or nobody knows.
core.register_action('ask_about_first_try', { 'http-req' }, function(txn)
  local token = txn:get_var('txn.token')
  if not token then return end
  local verdict = verdicts[token]
  if verdict then txn:set_var('txn.unbegun', true) end
  if verdict ~= nil then return end
  local last = sent[token]
  if not last then return end
  txn:set_var('txn.died', 'worker-' .. last.worker)
  ask_why_it_died(txn)
  if txn:get_var('txn.asks') and not txn:get_var('txn.stuck') then ask_whether_begun(txn, last.ms) end
end)
