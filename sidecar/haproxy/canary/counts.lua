-- What has become of requests on either side: for the page of metrics. Only of those that are on it by their place.
local judged = require('canary.judged')
local now_ms = require('clock')

local sides = { 'canary', 'stable' }

-- Whose first try has got no answer comes back under the name that nginx has given it. The latest are remembered.
local REMEMBERED_MAX = 4096

local function none() return { canary = 0, stable = 0 } end

local counts = { assigned = none(), errors = none(), fallbacks = none(), is_used = false }
local by_token, tokens, place = {}, {}, 0

local function add(what, side)
  counts.is_used = true
  counts[what][side] = counts[what][side] + 1
end

function counts.assign(side) add('assigned', side) end
function counts.fall_back(side) add('fallbacks', side) end

-- It is answered, and not lost; `reason` and `render_ms` as for canary/judged.lua.
function counts.answer(token, name, status, reason, render_ms)
  if token then by_token[token] = nil end
  if judged.is_error(status, reason) then add('errors', judged.side_of(name)) end
  judged.answer(name, status, reason, render_ms, now_ms())
end

-- `name` is what canary/judged.lua knows it by.
function counts.remember(token, name)
  place = place % REMEMBERED_MAX + 1
  if tokens[place] then by_token[tokens[place]] = nil end
  tokens[place], by_token[token] = token, name
end

-- It comes back.
function counts.fail_unanswered(token)
  local name = by_token[token]
  by_token[token] = nil
  local side = name and judged.side_of(name)
  if side then add('errors', side) end
  if name then judged.lose(name, now_ms()) end
end

local FAMILIES = {
  { 'assigned', 'Requests that were given to a side of a canary by their place.' },
  { 'errors', 'Of these, those that this side has answered with an error, or not at all.' },
  { 'fallbacks', 'Requests for a side of which no pod took them.' },
}

-- Adds them to a page of metrics, where there has been a canary.
function counts.add(page, is_there)
  if not counts.is_used and not is_there then return end
  for _, family in ipairs(FAMILIES) do
    local what, help = family[1], family[2]
    local name = 'corelane_canary_' .. what .. '_total'
    page.describe(name, 'counter', help)
    for _, side in ipairs(sides) do page.sample(name, '{side="' .. side .. '"}', counts[what][side]) end
  end
end

return counts
