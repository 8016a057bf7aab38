-- URLs that have got workers stuck lately, and what is left of `kills` (settings) for each. Computes only: what tables
-- and ACLs are, its caller says.
local suspects = {}
suspects.__index = suspects

-- A watchdog kills no worker more often than twice a second. Beyond it nothing is noted.
local ENTRIES_MAX = 20000

-- `settings`: 'kills', 'window-ms', 'duration-ms'. `answered(url)`: how often it has been answered, and how often in
-- the last seconds; nil if that is forgotten. `changed(what, key, is_in)`: what is "suspect" or "refused" changes.
local function new(settings, answered, changed)
  return setmetatable({
    settings = settings,
    answered = answered,
    changed = changed,
    kills = {}, -- by URL: { at_ms, name, client, share, answered }, the oldest first
    refused = {}, -- by URL, or URL and client: when that ends
    entries = 0,
  }, suspects)
end

-- The kills of a URL that count.
function suspects:recent(url, now)
  local list = self.kills[url]
  if not list then return {} end
  while list[1] and now - list[1].at_ms >= self.settings['window-ms'] do
    table.remove(list, 1)
    self.entries = self.entries - 1
  end
  if #list == 0 then
    self.kills[url] = nil
    self.changed('suspect', url, false)
  end
  return list
end

-- Whether it is fine for most: answered more often than killed since the first of these kills began. What was before
-- does not count, for a page that many see may be broken from now on. Before a kill any answer will do.
function suspects:is_fine(url, list)
  local answered = self.answered(url) or 0
  -- The table has forgotten the URL meanwhile.
  if list[1] and answered < list[1].answered then list[1].answered = 0 end
  return answered - (list[1] and list[1].answered or 0) > #list
end

-- What is left of `kills` for this client, and for all. One client's kills are one for all others: what a stranger does
-- to himself he cannot do to them.
function suspects:credit(list, client)
  local own, by_client, all = 0, {}, 0
  for _, kill in ipairs(list) do
    if kill.client == client then own = own + kill.share end
    by_client[kill.client] = math.max(by_client[kill.client] or 0, kill.share)
  end
  for _, share in pairs(by_client) do all = all + share end
  return self.settings['kills'] - math.max(own, all), self.settings['kills'] - all
end

function suspects:refuse(key, now)
  if not self.refused[key] then self.entries = self.entries + 1 end
  self.refused[key] = now + self.settings['duration-ms']
  self.changed('refused', key, true)
end

-- The watchdog has killed a worker because of a request; `name` is that kill's. Told twice where the client has waited
-- for it: the name tells, for the second time may come as late as the worker's next kill.
-- Where the worker had several requests nobody knows which it was: each is a part of a kill.
function suspects:note_kill(url, client, name, requests, now)
  local list = self:recent(url, now)
  for _, kill in ipairs(list) do
    if kill.name == name then return end
  end
  if self.entries >= ENTRIES_MAX then return end
  local answered, lately = self.answered(url)
  list[#list + 1] =
    { at_ms = now, name = name, client = client, share = 1 / requests, answered = (answered or 0) - (lately or 0) }
  self.kills[url], self.entries = list, self.entries + 1
  self.changed('suspect', url, true)
  if self:is_fine(url, list) then return end
  local left, left_for_all = self:credit(list, client)
  if left_for_all <= 0 then
    self:refuse(url, now)
  elseif left <= 0 then
    self:refuse(url .. ' ' .. client, now)
  end
end

-- Whether requests of this client for it are refused.
function suspects:is_refused(url, client)
  return self.refused[url] ~= nil or self.refused[url .. ' ' .. client] ~= nil
end

-- Whether one more might get one worker too many stuck, when `at_large(url)` are let through.
function suspects:is_one_too_many(url, client, at_large, now)
  local list = self:recent(url, now)
  return not self:is_fine(url, list) and at_large(url) >= self:credit(list, client)
end

-- Forgets what is over.
function suspects:sweep(now)
  for url in pairs(self.kills) do self:recent(url, now) end
  for key, ends_ms in pairs(self.refused) do
    if now >= ends_ms then
      self.refused[key], self.entries = nil, self.entries - 1
      self.changed('refused', key, false)
    end
  end
end

return new
