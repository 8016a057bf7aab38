-- Questions to the supervisors of the workers, in their containers. Nothing in an answer is trusted.

-- A supervisor answers within a millisecond or two, but on a machine that stalls it may get no CPU for long. Nor may
-- the process that is to end (request-journal.cjs: 1.5 s at most). The client waits for an answer meanwhile.
local BEGUN_MS_MAX = 2000
-- A kill by the watchdog has been noted before it: the answer is there at once, or the supervisor is in trouble as
-- well, or gets no CPU [measured: more than 0.5 s where 10 processes want 2 cores].
local WHY_MS_MAX = 1000
-- For some of its pages a supervisor wants to see that no program has been made to fetch them.
local MEANT = { ['X-Corelane-Runtime'] = { 'true' } }

local supervisors = { count = 0 }
local first_port

-- `first-port` is 0 where workers have no supervisor.
function supervisors.start(settings)
  first_port = settings['first-port']
  supervisors.count = first_port == 0 and 0 or settings['workers']
end

-- The reply of worker number `index` with status 200, or nil.
function supervisors.get(index, page, ms_max)
  if index >= supervisors.count then return nil end
  local request = { url = 'http://127.0.0.1:' .. first_port + index .. page, headers = MEANT, timeout = ms_max }
  local ok, reply = pcall(function() return core.httpclient():get(request) end)
  return ok and reply and reply.status == 200 and reply or nil
end

-- About a request, by its id, of a worker, by its name.
local function ask(worker, id, page, query, ms_max)
  local index = tonumber((worker or ''):match('^worker%-(%d+)$'))
  if not index or not id or not id:match('^[%w._-]+$') then return nil end
  return supervisors.get(index, page .. id .. query, ms_max)
end

local function header(reply, name)
  local values = reply.headers[name]
  return values and (values[0] or values[1])
end

-- If the watchdog has killed the worker with this request: the place that it was stuck in, how many requests the worker
-- had, and when it was, which no other kill of this worker has.
function supervisors.why_it_died(worker, id)
  local reply = ask(worker, id, '/why/', '', WHY_MS_MAX)
  local place = reply and header(reply, 'x-corelane-stuck')
  if not place then return nil end
  local at = (header(reply, 'x-corelane-stuck-at') or ''):sub(1, 32)
  return place, math.max(1, tonumber(header(reply, 'x-corelane-stuck-requests')) or 1), at
end

-- Whether it is certain that the request was not begun by the worker, and never will be in this try. `age_ms` since it
-- was sent there.
function supervisors.has_not_begun(worker, name, age_ms, token)
  local reply = ask(worker, name, '/begun/', '?ms=' .. age_ms .. '&try=' .. (token or ''), BEGUN_MS_MAX)
  return reply ~= nil and reply.body == 'no\n'
end

-- Whether a worker runs a request that may change something. One whose supervisor does not answer has ended, or hangs.
function supervisors.run_handlers()
  for index = 0, supervisors.count - 1 do
    local reply = supervisors.get(index, '/handlers', BEGUN_MS_MAX)
    if reply and reply.body == 'yes\n' then return true end
  end
  return false
end

return supervisors
