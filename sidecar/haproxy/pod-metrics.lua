-- One page with the figures of a pod (:8999/corelane/metrics), so that Prometheus needs one target for each pod:
-- requests as nginx has counted them, the pod as HAProxy sees it, the workers as their supervisors say; `?detail=1` has
-- all that these say. docs/adr/0044-metrics-that-see.md tells who counts what. Arguments (haproxy.cfg, lua-load):
-- key=number.
local exposition = require('metrics.exposition')
local new_news = require('news')
local nginx = require('metrics.nginx')
local now_ms = require('clock')
local supervisors = require('supervisors')
local workers = require('metrics.workers')

local settings = require('settings')('pod-metrics.lua', { ... }, { 'workers', 'nginx-port', 'hand-over' })
local add_pod = require('metrics.pod')(settings)

-- nginx answers at once, a supervisor within some milliseconds, and within half a second if its worker is frozen.
local ANSWER_MS_MAX = 1400
-- All that nginx can have to say is half of that.
local NGINX_BYTES_MAX = 64 * 1024
-- Who asks more often gets the same page: no number of questions may fill this process.
local KEEP_MS = 1000
local POLL_MS = 5
local CHUNK_BYTES = 8192

local function fetch_nginx()
  local request = { url = 'http://127.0.0.1:' .. settings['nginx-port'] .. '/metrics', timeout = ANSWER_MS_MAX }
  local reply = core.httpclient():get(request)
  local body = reply and reply.status == 200 and reply.body
  return body and #body <= NGINX_BYTES_MAX and body or nil
end

-- What each says, by number of the worker or 'nginx'; those that do not answer are missing.
local function fetch_all(has_detail)
  local found, missing = {}, 0
  local function begin(who, fetch)
    missing = missing + 1
    core.register_task(function()
      local ok, text = pcall(fetch)
      found[who] = ok and text or nil
      missing = missing - 1
    end)
  end
  begin('nginx', fetch_nginx)
  for index = 0, supervisors.count - 1 do
    begin(index, function() return workers.fetch(index, has_detail, ANSWER_MS_MAX) end)
  end
  local limit = now_ms() + ANSWER_MS_MAX
  while missing > 0 and now_ms() < limit do core.msleep(POLL_MS) end
  return found
end

local function render(has_detail)
  local found = fetch_all(has_detail)
  local page = exposition.new_page()
  local watched = 0
  for index = 0, supervisors.count - 1 do
    if found[index] then watched = watched + 1 end
  end
  local of_nginx = found['nginx'] or ''
  nginx.add(page, of_nginx)
  add_pod(page, watched, nginx.handed_over(of_nginx))
  workers.add(page, found, has_detail)
  return page.text()
end

-- A page that is made anew when it is old.
local function new_kept(has_detail)
  local text, made_at = nil, -math.huge
  local is_rendering, rendered = false, new_news()

  -- A task: a client that leaves takes the coroutine that serves it along, and all others would wait for that for ever.
  local function begin()
    is_rendering = true
    core.register_task(function()
      local ok, page = pcall(render, has_detail)
      if not ok then core.log(core.warning, 'pod-metrics: ' .. tostring(page)) end
      text, made_at = ok and page or nil, now_ms()
      is_rendering = false
      rendered.wake()
    end)
  end

  -- Nil when it could not be made.
  return function()
    if now_ms() - made_at >= KEEP_MS then
      if not is_rendering then begin() end
      rendered.wait()
    end
    return text
  end
end

local few, all = new_kept(false), new_kept(true)

core.register_service('corelane_metrics', 'http', function(applet)
  local text = applet.qs == 'detail=1' and all() or few()
  applet:set_status(text and 200 or 500)
  applet:add_header('content-type', 'text/plain; version=0.0.4')
  applet:add_header('cache-control', 'no-store')
  applet:start_response()
  if not text then return end
  for begin = 1, #text, CHUNK_BYTES do applet:send(text:sub(begin, begin + CHUNK_BYTES - 1)) end
end)
