-- Routes: URLs that differ in their last segment, or in ids, are pages of one kind, and behave alike. Remembered of a
-- route is which headers its pages depend on (Vary), and whether it is worth a look: a page that turns out not to be
-- for others was rendered in vain. Computes only.
local routes = {}
routes.__index = routes

local ROUTES_MAX = 4096
-- Headers that pages of one route depend on. Each makes more variants, and nginx has no room for more bytes.
local NAMES_MAX = 8
local NAMES_BYTES_MAX = 100
local SEGMENTS_MAX = 8
local BYTES_MAX = 256
-- Looks in vain that a route may cost before one look in `pass-ms` is left. Each page that is kept gives one back.
local CREDIT = 3
local CREDIT_MAX = 10
-- Looks in vain of all routes together: whoever asks for URLs of his choice costs no more than that.
local VAIN_MAX = 200
local VAIN_PER_S = 1
-- A page that is wanted so often in so short a time is looked at, whatever is known of its route.
local CROWD = 3
local CROWD_MS = 2000
local CROWDS_MAX = 1024

-- `settings`: 'pass-ms'.
local function new(settings)
  return setmetatable({
    settings = settings,
    all = {}, count = 0,
    crowds = {}, crowds_count = 0,
    vain = VAIN_MAX, vain_ms = 0,
  }, routes)
end

local function is_id(segment)
  return segment:match('^%d+$') or #segment >= 16 and segment:match('^[%x-]+$')
end

-- The route of a URL, and the section of the site that it is in: what is known of a route that nobody has seen yet.
function routes.of(host, path)
  local segments = {}
  for segment in path:sub(1, BYTES_MAX):match('^[^?]*'):gmatch('[^/]+') do
    segments[#segments + 1] = is_id(segment) and '*' or segment
  end
  local depth = #segments
  if depth > 0 then segments[depth] = '*' end
  local section = ('%s/%s %d'):format(host, segments[1] or '', depth)
  return host .. '/' .. table.concat(segments, '/', 1, math.min(depth, SEGMENTS_MAX)), section
end

local function entry(self, name)
  local known = self.all[name]
  if known then return known end
  if self.count >= ROUTES_MAX then self.all, self.count = {}, 0 end
  known = { credit = CREDIT, look_ms = -math.huge, names = {}, names_bytes = 0 }
  self.all[name], self.count = known, self.count + 1
  return known
end

local function refill(self, now)
  self.vain = math.min(VAIN_MAX, self.vain + math.max(0, now - self.vain_ms) / 1000 * VAIN_PER_S)
  self.vain_ms = now
end

local function is_crowd(self, key, now)
  local crowd = self.crowds[key]
  if not crowd or now - crowd.since_ms > CROWD_MS then
    if not crowd and self.crowds_count >= CROWDS_MAX then self.crowds, self.crowds_count = {}, 0 end
    if not self.crowds[key] then self.crowds_count = self.crowds_count + 1 end
    self.crowds[key] = { since_ms = now, count = 1 }
    return false
  end
  crowd.count = crowd.count + 1
  return crowd.count >= CROWD
end

local function is_worth_it(self, route, section, now)
  refill(self, now)
  if self.vain <= 0 then return false end
  local known = self.all[route] or self.all[section]
  if not known or known.credit > 0 then return true end
  if now < known.look_ms then return false end
  known.look_ms = now + self.settings['pass-ms']
  return true
end

-- Whether the page `key`, of which nobody knows whether it is for others, is rendered for all to see that.
function routes:may_look(key, route, section, now)
  return is_worth_it(self, route, section, now) or is_crowd(self, key, now)
end

-- A page of it was for one alone. An error says nothing of its route: it may be the URL that is none.
function routes:passed(route, section, is_error, now)
  refill(self, now)
  self.vain = self.vain - 1
  if is_error then return end
  for _, name in ipairs({ route, section }) do
    local known = entry(self, name)
    known.credit = math.max(0, known.credit - 1)
    known.look_ms = now + self.settings['pass-ms']
  end
end

-- A page of it is for others.
function routes:kept(route, section)
  for _, name in ipairs({ route, section }) do
    local known = entry(self, name)
    known.credit = math.min(CREDIT_MAX, known.credit + 1)
  end
end

-- Headers, in lower case, that its pages depend on, as far as they have said.
function routes:names(route)
  local known = self.all[route]
  return known and known.names or {}
end

-- Remembers these, too. False if they are too many: then its pages are not for others.
function routes:learn(route, names)
  local known = entry(self, route)
  local has = {}
  for _, name in ipairs(known.names) do has[name] = true end
  for _, name in ipairs(names) do
    if not has[name] then
      local bytes = known.names_bytes + #name + 2
      if #known.names >= NAMES_MAX or bytes > NAMES_BYTES_MAX then return false end
      known.names[#known.names + 1], has[name], known.names_bytes = name, true, bytes
    end
  end
  return true
end

return { new = new, of = routes.of }
