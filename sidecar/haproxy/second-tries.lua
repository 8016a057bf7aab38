-- A request whose worker has died: why, and its second try (docs/adr/0012). Arguments (haproxy.cfg, lua-load):
-- key=number.
local kills = require('kills')
local new_requests = require('second-tries.requests')
local new_verdicts = require('second-tries.verdicts')
local supervisors = require('supervisors')
local wall_ms = require('wall-clock')
require('second-tries.calm')

local settings = require('settings')('second-tries.lua', { ... }, { 'places' })

-- Whom HAProxy has given a request to. The token is nginx' name for it, the same in both tries, and nobody else's.
local requests = new_requests(settings['places'])
local verdicts = new_verdicts(settings['places'])

-- In a server line: called when HAProxy takes or opens a connection for a request, with the machine's time, the token,
-- and the name of a connection that nobody has used, if it is to have one. Gives the name of the connection.
core.register_converters('corelane_sent', function(request, worker)
  local ms, token, fresh = request:match('^(%d+)/([^/]*)/?(.*)$')
  -- Not HAProxy's own time: a process that began while HAProxy stood still knows nothing of a request that is older,
  -- and must not seem to.
  if token ~= '' then requests:note(token, worker, tonumber(ms)) end
  return fresh == '' and 'any' or fresh
end)

-- Another pod has it: what became of it, no supervisor here can know.
core.register_converters('corelane_sent_away', function(token)
  requests:forget(token)
  return 'any'
end)

core.register_action('note_verdict', { 'http-res' }, function(txn)
  local token = txn:get_var('txn.token')
  -- A bool comes as a number.
  if token then verdicts:note(token, txn:get_var('txn.unbegun') ~= nil) end
end)

-- Another pod has promised to take it: nobody can have begun it before there is a connection, which shows the ticket.
core.register_action('note_unbegun', { 'http-req' }, function(txn)
  local token = txn:get_var('txn.token')
  if token then verdicts:note(token, true) end
end)
core.register_fetches('corelane_side_ticket', function(txn)
  local token = txn:get_var('txn.token')
  if token and txn:get_var('txn.only_once') then verdicts:note(token, false) end
  return txn:get_var('txn.ticket')
end)

-- Sets txn.stuck, to the place, if the watchdog has killed the worker because of this request. Where the worker had
-- more than one, nobody knows whose fault it was: one that would be given to another worker is, once.
local function ask_why_it_died(txn)
  local worker, url = txn:get_var('txn.died'), txn:get_var('txn.url')
  local place, count, at = supervisors.why_it_died(worker, txn:get_var('txn.id'))
  if not place then return end
  if url then kills.tell(url, tostring(txn:get_var('txn.client')), worker, count, at) end
  if count == 1 or txn:get_var('txn.only_once') or txn:get_var('txn.is_second_try') then txn:set_var('txn.stuck', place) end
end
core.register_action('ask_why_it_died', { 'http-res' }, ask_why_it_died)

-- A worker (txn.died) has died with a request that may not be rendered twice, or has closed its connection. Its
-- supervisor knows whether it was begun, and has a worker that lives promise that it never begins this try; if it was
-- not, txn.unbegun is set. No answer, or another one than "no", sets nothing.
local function ask_whether_begun(txn, came_ms)
  if not came_ms then return end
  local age_ms = math.max(0, wall_ms(txn) - came_ms)
  local token = txn:get_var('txn.token')
  -- nginx' own name of the request where there is one: clients give several requests one id.
  if supervisors.has_not_begun(txn:get_var('txn.died'), token or txn:get_var('txn.id'), age_ms, token) then
    txn:set_var('txn.unbegun', true)
  end
end
core.register_action('ask_whether_begun', { 'http-res' }, function(txn)
  ask_whether_begun(txn, tonumber(txn:get_var('txn.came_ms')))
end)

-- A second try: what became of the first. Either HAProxy has answered that itself (a verdict), or the first went over a
-- kept connection, whose end HAProxy passes on without a word: then it was in the hands of the worker that had it last,
-- or nobody knows.
core.register_action('ask_about_first_try', { 'http-req' }, function(txn)
  local token = txn:get_var('txn.token')
  if not token then return end
  local verdict = verdicts:of(token)
  if verdict then txn:set_var('txn.unbegun', true) end
  if verdict ~= nil then return end
  local last = requests:last(token)
  if not last then return end
  txn:set_var('txn.died', 'worker-' .. last.worker)
  ask_why_it_died(txn)
  if txn:get_var('txn.asks') and not txn:get_var('txn.stuck') then ask_whether_begun(txn, last.ms) end
end)
