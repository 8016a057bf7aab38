-- Who may purge cached pages (docs/cache.md): a successful change purges its path, an application what it says in
-- X-Corelane-Purge, and a program in the pod what it asks for. Arguments (haproxy.cfg, lua-load): key=number.
local list = require('cache.purge-list')
local now_ms = require('clock')
local purging = require('cache.purging')
local wall_ms = require('wall-clock')

local settings = require('settings')('purge.lua', { ... }, { 'nginx-port' })
purging.start(settings['nginx-port'])

-- Of what an application says wrong, in the log.
local LOG_MS = 60000
local QUOTED_MAX = 64
local logged_ms = -math.huge

-- A longer list finds no room in the head of a response; another pod hears of it all the same, a little later.
local TOLD_BYTES_MAX = 512

local function explain(wrong)
  return '"' .. wrong:sub(1, QUOTED_MAX):gsub('[^ -~]', '?') .. '" is neither a path, nor tag:NAME, nor *'
end

-- Lines of a header.
local function lines_of(all, name)
  local lines, values, index = {}, all[name], 0
  while values and values[index] do
    lines[#lines + 1] = values[index]
    index = index + 1
  end
  return lines
end

-- Whether a response says that its request has changed something. A redirect but 303 says that the method is to be sent
-- elsewhere: nothing was changed here.
local function is_success(status)
  return status >= 200 and status < 300 or status == 303
end

-- What a response says was changed.
local function items_of(txn)
  local headers = txn.http:res_get_headers()
  local items, wrong = list.read(lines_of(headers, 'x-corelane-purge'))
  if wrong and now_ms() - logged_ms >= LOG_MS then
    logged_ms = now_ms()
    core.log(core.warning, 'X-Corelane-Purge of a response: ' .. explain(wrong))
  end
  local path = txn:get_var('txn.changed_path')
  if path and is_success(txn.f:status()) then
    local urls = { lines_of(headers, 'location')[1] or '', lines_of(headers, 'content-location')[1] or '' }
    for _, item in ipairs(list.changed(path, txn:get_var('txn.host') or '', urls)) do items[#items + 1] = item end
  end
  return items
end

-- A worker has answered: purges what was changed before anybody gets the response, whoever still waits for it. Sets
-- txn.purged, for the pod that has handed the request over.
core.register_action('note_change', { 'http-res' }, function(txn)
  local items = items_of(txn)
  if #items == 0 then return end
  local batch, text = purging.purge(items, wall_ms(txn))
  if batch then purging.wait_for(batch) end
  if #text <= TOLD_BYTES_MAX then txn:set_var('txn.purged', text) end
end)

-- A worker of another pod has: its client reads from this one next.
core.register_action('note_change_elsewhere', { 'http-res' }, function(txn)
  purging.hear(txn.f:res_fhdr('X-Corelane-Purged'), purging.ANSWER_MS_MAX)
end)

-- Sets txn.status, and txn.said.
core.register_action('purge', { 'http-req' }, function(txn)
  local function answer(status, said)
    txn:set_var('txn.status', status)
    txn:set_var('txn.said', said)
  end
  local items, wrong = list.read(lines_of(txn.http:req_get_headers(), 'x-corelane-purge'))
  if wrong then return answer(400, explain(wrong)) end
  if #items == 0 then return answer(400, 'X-Corelane-Purge lists nothing') end
  local batch = purging.purge(items, wall_ms(txn))
  if not batch then return answer(200, 'within a second') end
  if not purging.wait_for(batch) then return answer(503, 'nginx does not answer; it purges as soon as it does') end
  answer(200, 'done')
end)
