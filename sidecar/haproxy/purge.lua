-- Actions that purge cached pages (docs/cache.md): after a successful change, for X-Corelane-Purge of an application,
-- and for a program in the pod. Arguments (haproxy.cfg, lua-load): key=number.
local lines_of = require('header-lines')
local list = require('cache.purge-list')
local now_ms = require('clock')
local purging = require('cache.purging')
local wall_ms = require('wall-clock')

local settings = require('settings')('purge.lua', { ... }, { 'nginx-port' })
purging.start(settings['nginx-port'])

-- At most one warning about X-Corelane-Purge in this time.
local LOG_MS = 60000
local QUOTED_MAX = 64
local logged_ms = -math.huge

-- The head of a response has no room for a longer list. The pod of the client then gets the purges with all other pods.
local PURGED_BYTES_MAX = 512

local function explain(wrong)
  return '"' .. wrong:sub(1, QUOTED_MAX):gsub('[^ -~]', '?') .. '" is neither a path, nor tag:NAME, nor *'
end

-- Whether a status confirms a change. A redirect other than 303 asks the client to send the method to another URL.
local function is_success(status)
  return status >= 200 and status < 300 or status == 303
end

-- Returns the items that a response purges.
local function items_of(txn)
  local lines = lines_of(txn.http:res_get_headers())
  local items, wrong = list.read(lines('x-corelane-purge'))
  if wrong and now_ms() - logged_ms >= LOG_MS then
    logged_ms = now_ms()
    core.log(core.warning, 'X-Corelane-Purge of a response: ' .. explain(wrong))
  end
  local path = txn:get_var('txn.changed_path')
  if path and is_success(txn.f:status()) then
    local urls = { lines('location')[1] or '', lines('content-location')[1] or '' }
    for _, item in ipairs(list.changed(path, txn:get_var('txn.host') or '', urls)) do items[#items + 1] = item end
  end
  return items
end

-- Purges what the response of a worker changed, before the client gets the response. Sets txn.purged for the pod that
-- handed the request over.
core.register_action('purge_changed', { 'http-res' }, function(txn)
  local items = items_of(txn)
  if #items == 0 then return end
  local number, entries = purging.purge(items, wall_ms(txn))
  if number then purging.wait_for(number) end
  if #entries <= PURGED_BYTES_MAX then txn:set_var('txn.purged', entries) end
end)

-- Purges what the response of a peer's worker changed: the client will read from this pod.
core.register_action('purge_changed_by_peer', { 'http-res' }, function(txn)
  purging.receive(txn.f:res_fhdr('X-Corelane-Purged'), purging.ANSWER_MS_MAX)
end)

-- Purges what a program in the pod lists. Sets txn.status and txn.said, the response.
core.register_action('purge', { 'http-req' }, function(txn)
  local function answer(status, said)
    txn:set_var('txn.status', status)
    txn:set_var('txn.said', said)
  end
  local items, wrong = list.read(lines_of(txn.http:req_get_headers())('x-corelane-purge'))
  if wrong then return answer(400, explain(wrong)) end
  if #items == 0 then return answer(400, 'X-Corelane-Purge lists nothing') end
  local number = purging.purge(items, wall_ms(txn))
  if not number then return answer(200, 'within two seconds') end
  if not purging.wait_for(number) then return answer(503, 'nginx does not answer; HAProxy retries the purge') end
  answer(200, 'done')
end)
