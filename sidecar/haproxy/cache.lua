-- Pages that nginx keeps: who waits for whom, and what becomes of a response (docs/cache.md). Arguments (haproxy.cfg,
-- lua-load): key=number; `headers` and `keyed` are lists of names.
local fields = require('cache.fields')
local homes = require('cache.homes')
local judge = require('cache.judge')
local lines_of = require('header-lines')
local live = require('live.values')
local new_herds = require('cache.herds')
local now_ms = require('clock')
local routes = require('cache.routes')
local vary = require('cache.vary')
local verdict_of = require('cache.verdict')
local wall_ms = require('wall-clock')

local SWEEP_MS = 5000
-- How often a herd looks whether a render alone has ended.
local POLL_MS = 20
-- nginx keeps a page for no longer.
local WINDOW_S_MAX = 3600

local settings = require('settings')('cache.lua', { ... }, {
  'herds', 'tries', 'pass-ms', 'kept-bytes', 'transforms', 'headers', 'keyed',
}, { headers = true, keyed = true })
settings['places'] = settings['herds']
-- How long pages are given out after their end.
setmetatable(settings, { __index = live })

local function set_of(list)
  local set = {}
  for name in list:gmatch('[^,]+') do set[name] = true end
  return set
end

-- Request headers that every shared render gets, and those in cache.key.
local own, keyed = set_of(settings['headers']), set_of(settings['keyed'])
local known_routes = routes.new(settings)

-- Constants in place of what the client sent: applications read these two without checking that they are there.
local ANYBODY = { accept = '*/*', ['user-agent'] = 'Corelane' }

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

-- nginx' key, the class, and the places of a request that a render has sent to its own site. People do not wait for a
-- render that was put behind others. Such a request does not wait for a render that may wait for its sender's slot.
local function key_of(txn)
  local key = header(txn, 'X-Corelane-Key')
  if not key then return nil end
  return table.concat({ key, header(txn, 'X-Corelane-Class') or '', txn:get_var('txn.own_site') or '' }, ' ')
end

-- The same in all pods.
local function url_of(txn)
  return (header(txn, 'Host') or '') .. txn.f:url()
end

local function route_of(txn)
  return routes.of(header(txn, 'Host') or '', txn.f:path() or '')
end

-- Those who render here stand together, be they clients or peers. Those who ask another pod first have a herd of their
-- own: who comes from a peer must never wait for one that waits for a peer.
local function herd_key(txn, key)
  if not settings['shared'] then return key end
  local here, away = key .. ' here', key .. ' away'
  if header(txn, 'X-Corelane-For-Peer') then return here end
  -- Another pod would put it behind its renders.
  if txn:get_var('txn.own_site') then return here end
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

local function tell_pass(txn, why)
  txn:set_var('txn.outcome', 'pass')
  txn:set_var('txn.why', why)
end

local function tell(txn, herd)
  if herd.outcome == 'pass' then return tell_pass(txn, herd.why) end
  note(txn, 'txn.outcome', herd.outcome)
  if herd.outcome ~= 'failed' then return end
  txn:set_var('txn.failed_status', herd.status)
  txn:set_var('txn.reason', herd.reason)
end

-- The name under which a page, a route or a section is remembered that cannot be cached for requests with cookies.
local function personal(name) return name .. ' personal' end

-- Whether a request has cookies that the cache key lacks and that are no tracking cookies.
local function has_cookies(txn) return header(txn, 'X-Corelane-Personal') ~= nil end

-- Whether to try to cache a page, which wastes a render if it cannot be cached. Always if nginx had the page before, or
-- if the request has been here before. If others wait for it: unless pages of the route vary by Cookie, because the
-- page of a guest is of no use to a request with cookies.
local function may_look(txn, key, rounds, told, now)
  if rounds ~= '' or header(txn, 'X-Corelane-Found') ~= 'MISS' then return true end
  local route, section = route_of(txn)
  if has_cookies(txn) and not known_routes:may_look(personal(key), personal(route), personal(section), now) then
    return false
  end
  return herds:has(key, told, now) or known_routes:may_look(key, route, section, now)
end

-- Why the page of a request cannot be cached, if that is known.
local function why_known(txn, key, now)
  return herds:why_pass(key, now) or has_cookies(txn) and herds:why_pass(personal(key), now) or nil
end

-- Sets txn.outcome if it is known, else txn.herd and txn.place; neither if there is no place.
core.register_action('join_herd', { 'http-req' }, function(txn)
  local page, token = key_of(txn), header(txn, 'X-Corelane-Request')
  if not page or not token then return end
  local key, now = herd_key(txn, page), now_ms()
  local rounds, told = header(txn, 'X-Corelane-Round') or '', tonumber(header(txn, 'X-Corelane-Told'))
  local is_again = txn:get_var('txn.is_again') ~= nil
  local known = why_known(txn, key, now)
  if known then return tell_pass(txn, known) end
  if not is_again and not may_look(txn, key, rounds, told, now) then return tell_pass(txn, 'route') end
  local herd, why = herds:join(key, token, is_again, rounds, told, now)
  if why then return tell_pass(txn, why) end
  if not herd then return end
  txn:set_var('txn.herd', tostring(herd.id))
  if herd.outcome and is_again then return tell(txn, herd) end
  txn:set_var('txn.place', 'herd-' .. herd.place)
end)

-- It comes out of the queue.
core.register_action('herd_turn', { 'http-req' }, function(txn)
  local token = header(txn, 'X-Corelane-Request') or ''
  txn:set_var('txn.token', token)
  local route, section = route_of(txn)
  txn:set_priv({
    route = route, section = section, is_personal = has_cookies(txn),
    -- nginx serves an expired page in place of an error, and a peer renders the page itself.
    passes_error = header(txn, 'X-Corelane-Has-Stale') ~= nil or header(txn, 'X-Corelane-For-Peer') ~= nil,
  })
  local page = key_of(txn)
  note(txn, 'txn.key', page and herd_key(txn, page))
  -- nginx tells which rule of cache.ttl the path is in.
  local rule = header(txn, 'X-Corelane-Ttl')
  note(txn, 'txn.ttl', rule and live['ttl-' .. rule .. '-s'])
  local id = tonumber(header(txn, 'X-Corelane-Herd'))
  local now = now_ms()
  local herd, goes_on = herds:turn(id, token, now)
  if not herd then return end
  txn:set_var('txn.herd', tostring(herd.id))
  while herds:awaits_lone(herd, now) do
    core.msleep(POLL_MS)
    now = now_ms()
  end
  if goes_on and herd.outcome then herds:answered(herd, token) end
  if herd.outcome then return tell(txn, herd) end
  local why = why_known(txn, herd.key, now)
  if why then
    herds:again(herd, token, now)
    return tell_pass(txn, why)
  end
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

-- The value of a header as nginx compares it, so that requests with one cached page look alike to the worker. nginx
-- joins the lines of a header by ", " in the cache key, and by "," for a variant. For a variant by one of NORMALIZED it
-- treats blanks like commas. Empty: nginx treats it like a missing header.
local NORMALIZED = { ['accept-language'] = true, ['accept-charset'] = true }
local function as_compared(name, lines)
  local value = table.concat(lines, keyed[name] and ', ' or ',')
  if keyed[name] then return value:match('^[, ]*$') and '' or value end
  if not NORMALIZED[name] then return value end
  local words = {}
  for word in value:gmatch('[^, ]+') do words[#words + 1] = word end
  return table.concat(words, ', ')
end

-- Removes the request headers that a shared render must not see: all but those that the proxies set, those in the cache
-- key, and those that pages of this route vary by. Sets txn.is_alike at its end.
core.register_action('show_all_alike', { 'http-req' }, function(txn)
  local asked, is_shown = txn:get_priv(), {}
  asked.shown, asked.withheld = {}, {}
  for _, name in ipairs(known_routes:names(asked.route)) do
    asked.shown[#asked.shown + 1], is_shown[name] = name, true
  end
  local said = txn.http:req_get_headers()
  local lines = lines_of(said)
  for name in pairs(said) do
    if keyed[name] or is_shown[name] then
      local value = as_compared(name, lines(name))
      txn.http:req_del_header(name)
      if value ~= '' then txn.http:req_add_header(name, value) end
    elseif not own[name] and not name:match('^x%-corelane%-') then
      asked.withheld[name] = table.concat(lines(name)) ~= ''
      txn.http:req_del_header(name)
    end
  end
  for name, value in pairs(ANYBODY) do
    if not keyed[name] and not is_shown[name] then txn.http:req_set_header(name, value) end
  end
  txn:set_var('txn.is_alike', true)
end)

local function herd_of(txn)
  local herd = herds.by_id[tonumber(txn:get_var('txn.herd'))]
  if herd then herds:answered(herd, txn:get_var('txn.token')) end
  return herd
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

-- Sets both forms of Vary: X-Corelane-Vary for clients, and Vary itself, by which nginx tells variants (`names`). If
-- nginx compresses pages, it adds Accept-Encoding by itself.
local function tell_vary(txn, said, names)
  local words = {}
  for _, line in ipairs(said) do
    for word in line:gmatch('[^%s,]+') do
      if settings['transforms'] == 0 or word:lower() ~= 'accept-encoding' then words[#words + 1] = word end
    end
  end
  txn.http:res_del_header('Vary')
  if #words > 0 then txn.http:res_set_header('X-Corelane-Vary', table.concat(words, ', ')) end
  if names and #names > 0 then txn.http:res_set_header('Vary', table.concat(names, ', ')) end
end

local function keep(txn, page, headers)
  make_impersonal(txn, headers)
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

-- The page is rendered for this client alone, with everything that the client sent.
local function leave_alone(txn, why)
  txn:set_var('txn.again_alone', true)
  txn:set_var('txn.why', why)
end

-- The page cannot be cached for anybody.
local function pass(txn, herd, why, now)
  local key, asked = txn:get_var('txn.key'), txn:get_priv()
  if herd then herds:pass(herd, why, now) elseif key then herds:note_pass(key, why, now) end
  known_routes:passed(asked.route, asked.section, why == 'status', now)
  leave_alone(txn, why)
end

-- The page cannot be cached for this request. The others of its herd go on.
local function pass_alone(txn, herd, why, now)
  local key, asked = herd and herd.key or txn:get_var('txn.key'), txn:get_priv()
  if why == 'cookie' then
    if key then herds:note_pass(personal(key), why, now) end
    known_routes:passed(personal(asked.route), personal(asked.section), false, now)
  end
  if herd then herds:again(herd, txn:get_var('txn.token'), now) end
  leave_alone(txn, why)
end

-- The page was cached.
local function note_kept(asked)
  known_routes:kept(asked.route, asked.section)
  if asked.is_personal then known_routes:kept(personal(asked.route), personal(asked.section)) end
end

-- Reasons of a home that are about one request, or that the home remembers, and not about the page.
local OF_ONE = { cookie = true, route = true, ['not-found'] = true, error = true }

-- What the home has said, which may be anything.
core.register_action('judge_home', { 'http-res' }, function(txn)
  local now = now_ms()
  local headers = lines_of(txn.http:res_get_headers())
  local page, why = verdict_of(txn.f:status(), headers, wall_ms(txn) // 1000)
  for _, name in ipairs({ 'Expires', 'Stale', 'Vary', 'Alone' }) do txn.http:res_del_header('X-Corelane-' .. name) end
  if not page or page == 'nonsense' then
    txn:set_var('txn.no_page', true)
    return leave_home(txn, page ~= nil)
  end
  txn.http:res_set_header('X-Accel-Expires', '0')
  local herd, asked = herd_of(txn), txn:get_priv()
  if page == 'alone' then return (OF_ONE[why] and pass_alone or pass)(txn, herd, why, now) end
  keep(txn, page, headers)
  if page.vary then txn.http:res_set_header('X-Corelane-Vary', page.vary) end
  txn.http:res_set_header('X-Corelane-Shared', '1')
  note_kept(asked)
  if herd then herds:filled(herd, now) end
end)

-- Caches a response that may be cached, unless its Vary forbids that. Returns the reason if it is not cached.
local function keep_by_vary(txn, page, headers, herd, now)
  local said, asked = headers('vary'), txn:get_priv()
  local depends, why = vary(fields.words(said), asked, keyed)
  if not depends then return why end
  -- The next render of the route gets these headers at once.
  if not known_routes:learn(asked.route, depends.names) then return 'vary' end
  if #depends.missing > 0 then
    if herd then herds:again(herd, txn:get_var('txn.token'), now) end
    txn:set_var('txn.again', true)
    return nil
  end
  if depends.has_cookies then depends.names[#depends.names + 1] = 'X-Corelane-Personal' end
  keep(txn, page, headers)
  tell_vary(txn, said, depends.names)
  note_kept(asked)
  if herd then herds:filled(herd, now) end
end

core.register_action('judge_page', { 'http-res' }, function(txn)
  local now = now_ms()
  local herd = herd_of(txn)
  local status = txn.f:status()
  local headers = lines_of(txn.http:res_get_headers())
  txn.http:res_set_header('X-Accel-Expires', '0')
  if status >= 500 then
    tell_vary(txn, headers('vary'))
    local reason, asked = txn.f:res_hdr('X-Corelane-Error') or '', txn:get_priv()
    local is_first = not herd or herd.failures == 0
    -- The quarantine may have refused this client alone, and nothing was rendered: another one of the herd goes on.
    if herd and reason == 'poison' then
      herds:refused(herd, txn:get_var('txn.token'), now)
    elseif herd then
      local is_gateways = status >= 502 and status <= 504
      herds:failed(herd, is_gateways and status or 503, reason ~= '' and reason or 'render-failed', false, now)
    end
    if reason ~= '' or asked.passes_error then return end
    if herd and herd.outcome == 'pass' then return leave_alone(txn, herd.why) end
    -- The application may have failed because this render lacked a header or a cookie of its client. Bounded for the
    -- pod, because crowds and pages that nginx had before are tried again and again.
    if not is_first or not known_routes:may_waste(now) then return end
    known_routes:passed(asked.route, asked.section, false, now)
    if herd then herds:goes_alone(herd, txn:get_var('txn.token'), now) end
    return leave_alone(txn, 'error')
  end
  local page, why = judge(status, headers, tonumber(txn:get_var('txn.ttl')), settings, wall_ms(txn) // 1000)
  if page then why = keep_by_vary(txn, page, headers, herd, now) end
  if why == 'cookie' then pass_alone(txn, herd, why, now) elseif why then pass(txn, herd, why, now) end
end)

-- In the frontend before the workers: the response to a request that is rendered alone.
core.register_action('lone_answered', { 'http-res' }, function(txn)
  herds:lone_answered(txn:get_var('txn.token'), txn.f:status() >= 500, now_ms())
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
