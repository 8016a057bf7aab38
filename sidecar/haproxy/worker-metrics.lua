-- One page with the figures of all workers (:8999/workers/metrics), so that Prometheus needs one target for each pod
-- and not one for each worker. Each supervisor gives a page of its own; here the samples of one metric come together,
-- as Prometheus' text format wants it. They differ in the label `worker`.
local new_news = require('news')
local now_ms = require('clock')
local supervisors = require('supervisors')

-- A supervisor answers within some milliseconds, and within half a second if its worker is frozen.
local ANSWER_MS_MAX = 1500
-- Of one worker; 15 kB are usual. The pages come from the user's containers, so nothing in them is trusted.
local PAGE_BYTES_MAX = 256 * 1024
-- Who asks more often gets the same page: no number of questions may fill this process.
local KEEP_MS = 1000
local POLL_MS = 5
local CHUNK_BYTES = 8192

local function fetch(index)
  local reply = supervisors.get(index, '/metrics', ANSWER_MS_MAX)
  local body = reply and reply.body
  return body and #body <= PAGE_BYTES_MAX and body or nil
end

-- Pages by number of the worker; those that do not answer are missing.
local function fetch_all()
  local pages, missing = {}, supervisors.count
  for index = 0, supervisors.count - 1 do
    core.register_task(function()
      pages[index] = fetch(index)
      missing = missing - 1
    end)
  end
  local limit = now_ms() + ANSWER_MS_MAX
  while missing > 0 and now_ms() < limit do core.msleep(POLL_MS) end
  return pages
end

-- Adds the samples of one page to the families (name -> lines), which `order` keeps in order.
local function add(page, index, families, order)
  local own = 'worker="' .. index .. '"'
  local family
  for line in page:gmatch('[^\n]+') do
    local keyword, name = line:match('^# (%u+) (corelane_worker_[%w_]+) ')
    if keyword == 'HELP' then
      family = families[name]
      if not family then
        family = { line }
        families[name] = family
        order[#order + 1] = family
      end
    elseif keyword == 'TYPE' then
      if family and #family == 1 then family[2] = line end
    elseif family and line:match('^corelane_worker_[%w_]+{([^,}]+)') == own then
      family[#family + 1] = line
    end
  end
end

local function render()
  local pages = fetch_all()
  local families = {}
  local presence = {
    '# HELP corelane_worker_runtime_up Whether the runtime of the worker answers.',
    '# TYPE corelane_worker_runtime_up gauge',
  }
  local order = { presence }
  for index = 0, supervisors.count - 1 do
    presence[#presence + 1] = 'corelane_worker_runtime_up{worker="' .. index .. '"} ' .. (pages[index] and 1 or 0)
    if pages[index] then add(pages[index], index, families, order) end
  end
  local parts = {}
  for _, family in ipairs(order) do parts[#parts + 1] = table.concat(family, '\n') end
  return table.concat(parts, '\n') .. '\n'
end

local page, page_at = nil, -math.huge
local is_rendering, rendered = false, new_news()

-- A task: a client that leaves takes the coroutine that serves it along, and all others would wait for that for ever.
local function begin_rendering()
  is_rendering = true
  core.register_task(function()
    local ok, text = pcall(render)
    if not ok then core.log(core.warning, 'worker-metrics: ' .. tostring(text)) end
    page, page_at = ok and text or nil, now_ms()
    is_rendering = false
    rendered.wake()
  end)
end

-- Nil when it could not be made.
local function current_page()
  if now_ms() - page_at >= KEEP_MS then
    if not is_rendering then begin_rendering() end
    rendered.wait()
  end
  return page
end

core.register_service('worker_metrics', 'http', function(applet)
  local text = current_page()
  applet:set_status(text and 200 or 500)
  applet:add_header('content-type', 'text/plain; version=0.0.4')
  applet:add_header('cache-control', 'no-store')
  applet:start_response()
  if not text then return end
  for begin = 1, #text, CHUNK_BYTES do applet:send(text:sub(begin, begin + CHUNK_BYTES - 1)) end
end)
