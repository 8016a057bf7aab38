-- Pages that nginx keeps: who waits for whom, and what becomes of a response (docs/cache.md). Arguments (haproxy.cfg,
-- lua-load): key=number.
local fields = require('cache.fields')
local homes = require('cache.homes')
local judge = require('cache.judge')
local live = require('live.values')
local new_herds = require('cache.herds')
local now_ms = require('clock')
local verdict_of = require('cache.verdict')
local wall_ms = require('wall-clock')

local SWEEP_MS = 5000
-- nginx keeps a page for no longer.
local WINDOW_S_MAX = 3600

local settings = require('settings')('cache.lua', { ... }, {
  'herds', 'tries', 'pass-ms', 'kept-bytes', 'transforms',
})
settings['places'] = settings['herds']
-- How long pages are given out after their end.
setmetatable(settings, { __index = live })

local places = {}
local herds = new_herds(settings, function(place)
  return places[place]:get_cur_sess() == 0 and places[place]:get_pend_conn() == 0
end)

core.register_init(function()
  for index = 0, settings['places'] - 1 do places[index] = core.backends['herds'].servers['herd-' .. index] end
end)

local function header(txn, name)
  local value = txn.f:req_hdr(name)
  return value ~= '' and value or nil
end

-- nginx' key, and the class: people do not wait for a render that was put behind others.
local function key_of(txn)
  local key = header(txn, 'X-Corelane-Key')
  return key and key .. ' ' .. (header(txn, 'X-Corelane-Class') or '')
end

-- The same in all pods.
local function url_of(txn)
  return (header(txn, 'Host') or '') .. txn.f:url()
end

-- Those who render here stand together, be they clients or peers. Those who ask another pod first have a herd of their
-- own: who comes from a peer must never wait for one that waits for a peer.
local function herd_key(txn, key)
  if not settings['shared'] then return key end
  local here, away = key .. ' here', key .. ' away'
  if header(txn, 'X-Corelane-For-Peer') then return here end
  -- The home may be another one by now: a herd that there is goes before it.
  local told, now = tonumber(header(txn, 'X-Corelane-Told')), now_ms()
  if herds:has(away, told, now) then return away end
  if herds:has(here, told, now) then return here end
  return homes.is_here(url_of(txn)) and here or away
end

local function is_away(herd)
  return herd.key:sub(-5) == ' away'
end

-- HAProxy takes nil for false.
local function note(txn, name, value)
  if value then txn:set_var(name, value) end
end

local function tell(txn, herd)
  note(txn, 'txn.outcome', herd.outcome)
  if herd.outcome ~= 'failed' then return end
  txn:set_var('txn.failed_status', herd.status)
  txn:set_var('txn.reason', herd.reason)
end

-- Sets txn.outcome if it is known, else txn.herd and txn.place; neither if there is no place.
core.register_action('join_herd', { 'http-req' }, function(txn)
  local page, token = key_of(txn), header(txn, 'X-Corelane-Request')
  if not page or not token then return end
  local key = herd_key(txn, page)
  local round = #(header(txn, 'X-Corelane-Round') or '')
  local is_again = txn:get_var('txn.is_again') ~= nil
  local herd, known = herds:join(key, token, is_again, round, tonumber(header(txn, 'X-Corelane-Told')), now_ms())
  if known then return txn:set_var('txn.outcome', known) end
  if not herd then return end
  txn:set_var('txn.herd', tostring(herd.id))
  if herd.outcome and is_again then return tell(txn, herd) end
  txn:set_var('txn.place', 'herd-' .. herd.place)
end)

-- It comes out of the queue.
core.register_action('herd_turn', { 'http-req' }, function(txn)
  local token = header(txn, 'X-Corelane-Request') or ''
  txn:set_var('txn.token', token)
  local page = key_of(txn)
  note(txn, 'txn.key', page and herd_key(txn, page))
  -- nginx tells which rule of cache.ttl the path is in.
  local rule = header(txn, 'X-Corelane-Ttl')
  note(txn, 'txn.ttl', rule and live['ttl-' .. rule .. '-s'])
  note(txn, 'txn.personal', header(txn, 'X-Corelane-Personal'))
  local id = tonumber(header(txn, 'X-Corelane-Herd'))
  local herd, goes_on = herds:turn(id, token, now_ms())
  if not herd then return end
  txn:set_var('txn.herd', tostring(herd.id))
  if not goes_on then return tell(txn, herd) end
  if herd.died then txn:set_var('txn.after_death', true) end
end)

-- It goes on for all: sets txn.home, txn.peer, txn.ticket and txn.proof if its page has a home that takes it.
core.register_action('find_home', { 'http-req' }, function(txn)
  local herd = herds.by_id[tonumber(txn:get_var('txn.herd'))]
  if not herd or not settings['shared'] or not is_away(herd) or herd.has_no_home then return end
  local slot = homes.slots[herd.place]
  local peer, hand_over = homes.find(url_of(txn))
  if not slot or not peer then return end
  herds:goes_home(herd, txn:get_var('txn.token'))
  slot.peer, slot.missed = peer, 0
  txn:set_var('txn.home', 'home-' .. herd.place)
  txn:set_var('txn.peer', peer.address)
  txn:set_var('txn.ticket', hand_over[1])
  txn:set_var('txn.proof', hand_over[2])
end)

local function herd_of(txn)
  local herd = herds.by_id[tonumber(txn:get_var('txn.herd'))]
  if herd then herds:answered(herd, txn:get_var('txn.token')) end
  return herd
end

-- Lines of a header of the response, in their order.
local function lines_of(all)
  return function(name)
    local lines, values = {}, all[name]
    if not values then return lines end
    local index = values[0] and 0 or 1
    while values[index] do
      lines[#lines + 1] = values[index]
      index = index + 1
    end
    return lines
  end
end

local function set_lines(txn, name, lines)
  txn.http:res_del_header(name)
  for _, line in ipairs(lines) do txn.http:res_add_header(name, line) end
end

-- What is about this one response, and not about the page.
local function make_impersonal(txn, headers)
  for _, word in ipairs(fields.words(headers('connection'))) do
    if word ~= 'close' and word ~= 'keep-alive' then txn.http:res_del_header(word) end
  end
  local timing = {}
  for _, line in ipairs(headers('server-timing')) do
    if not line:match('^queue;dur=%d+$') then timing[#timing + 1] = line end
  end
  set_lines(txn, 'Server-Timing', timing)
end

-- What clients accept is in nginx' key, in one form of a few: as a part of Vary it would be as many as there are
-- browsers.
local function take_encoding_out(txn, headers)
  local others, has_encoding = {}, false
  for _, word in ipairs(fields.words(headers('vary'))) do
    if word == 'accept-encoding' then has_encoding = true else others[#others + 1] = word end
  end
  if not has_encoding then return end
  set_lines(txn, 'Vary', #others > 0 and { table.concat(others, ', ') } or {})
  txn.http:res_set_header('X-Corelane-Vary', 'Accept-Encoding')
end

local function keep(txn, page, headers)
  make_impersonal(txn, headers)
  take_encoding_out(txn, headers)
  txn.http:res_del_header('Age')
  if page.age_s > 0 then txn.http:res_set_header('Age', tostring(page.age_s)) end
  txn.http:res_set_header('X-Accel-Expires', '@' .. page.until_s)
  local windows = { math.min(page.revalidate_s, WINDOW_S_MAX), math.min(page.error_s, WINDOW_S_MAX) }
  txn.http:res_set_header('X-Corelane-Stale', table.concat(windows, ' '))
end

-- Nothing has come of it: the request is led back here, and rendered.
local function leave_home(txn, is_to_blame)
  local herd = herds.by_id[tonumber(txn:get_var('txn.herd'))]
  if herd then herds:left_home(herd, txn:get_var('txn.token'), now_ms()) end
  if is_to_blame then homes.shun(txn:get_var('txn.peer')) end
end

-- Nobody has answered in time, or not who was asked.
core.register_action('leave_home', { 'http-after-res' }, function(txn) leave_home(txn, true) end)

-- What the home has said, which may be anything.
core.register_action('judge_home', { 'http-res' }, function(txn)
  local now = now_ms()
  local headers = lines_of(txn.http:res_get_headers())
  local page = verdict_of(txn.f:status(), headers, wall_ms(txn) // 1000)
  for _, name in ipairs({ 'Expires', 'Stale', 'Vary', 'Alone' }) do txn.http:res_del_header('X-Corelane-' .. name) end
  if not page or page == 'nonsense' then
    txn:set_var('txn.no_page', true)
    return leave_home(txn, page ~= nil)
  end
  txn.http:res_set_header('X-Accel-Expires', '0')
  local herd = herd_of(txn)
  if type(page) == 'table' then
    keep(txn, page, headers)
    if page.has_encodings then txn.http:res_set_header('X-Corelane-Vary', 'Accept-Encoding') end
    txn.http:res_set_header('X-Corelane-Shared', '1')
    if herd then herds:filled(herd, now) end
    return
  end
  if herd then herds:pass(herd, now) end
  if page == 'alone' or txn:get_var('txn.personal') then txn:set_var('txn.again_alone', true) end
end)

core.register_action('judge_page', { 'http-res' }, function(txn)
  local now = now_ms()
  local herd = herd_of(txn)
  local status = txn.f:status()
  txn.http:res_set_header('X-Accel-Expires', '0')
  if status >= 500 then
    if herd then
      local reason = txn.f:res_hdr('X-Corelane-Error')
      local is_gateways = status >= 502 and status <= 504
      herds:failed(herd, is_gateways and status or 503, reason ~= '' and reason or 'render-failed', false, now)
    end
    return
  end
  local headers = lines_of(txn.http:res_get_headers())
  local page = judge(status, headers, tonumber(txn:get_var('txn.ttl')), settings, wall_ms(txn) // 1000)
  if page then
    keep(txn, page, headers)
    if herd then herds:filled(herd, now) end
    return
  end
  local key = txn:get_var('txn.key')
  if herd then herds:pass(herd, now) elseif key then herds:note_pass(key, now) end
  -- Rendered without what makes it personal: its client gets it with that.
  if txn:get_var('txn.personal') then txn:set_var('txn.again_alone', true) end
end)

-- Nobody has answered: its worker has died. It comes back, or is told by nginx.
core.register_action('herd_unanswered', { 'http-after-res' }, function(txn)
  local herd = herds.by_id[tonumber(txn:get_var('txn.herd'))]
  if herd then herds:unanswered(herd, txn:get_var('txn.token'), now_ms()) end
end)

core.register_task(function()
  while true do
    core.msleep(SWEEP_MS)
    herds:sweep(now_ms())
  end
end)
