-- The memory of routes. URLs that differ only in their last segment or in ids are one route: the application renders
-- them by the same code. A route remembers which headers its pages vary by, and whether its pages can be cached: a try
-- of one that cannot is a wasted render. Computes only.
local routes = {}
routes.__index = routes

local ROUTES_MAX = 4096
-- Headers that pages of one route vary by. Each makes more variants, and nginx has no room for more bytes.
local NAMES_MAX = 8
local NAMES_BYTES_MAX = 100
local SEGMENTS_MAX = 8
local BYTES_MAX = 256
-- A route may waste so many renders; then it has one try each `pass-ms`. Each page that is cached gives one back.
local CREDIT = 3
local CREDIT_MAX = 10
-- All routes together may waste so many, which bounds a client that invents URLs.
local VAIN_MAX = 200
local VAIN_PER_S = 1
-- Requests for one page within so many milliseconds that cause a try, whatever the route remembers.
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

-- The route of a URL, and its section of the site, whose credit counts while the route is unknown.
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

-- Whether the pod may waste one more render.
function routes:may_waste(now)
  refill(self, now)
  return self.vain > 0
end

local function is_worth_it(self, route, section, now)
  if not self:may_waste(now) then return false end
  local known = self.all[route] or self.all[section]
  if not known or known.credit > 0 then return true end
  if now < known.look_ms then return false end
  known.look_ms = now + self.settings['pass-ms']
  return true
end

-- Whether to try the page `key`, of which it is not known whether it can be cached.
function routes:may_look(key, route, section, now)
  return is_worth_it(self, route, section, now) or is_crowd(self, key, now)
end

-- A page of the route could not be cached. An error (`is_error`) costs the route no credit: its URL may not exist.
function routes:passed(route, section, is_error, now)
  refill(self, now)
  -- What crowds waste beyond the limit is forgotten within minutes.
  self.vain = math.max(-VAIN_MAX, self.vain - 1)
  if is_error then return end
  for _, name in ipairs({ route, section }) do
    local known = entry(self, name)
    -- Crowds do not put off the next try of a route without credit: a client could do so for ever.
    if known.credit > 0 then
      known.credit, known.look_ms = known.credit - 1, now + self.settings['pass-ms']
    end
  end
end

-- A page of the route was cached.
function routes:kept(route, section)
  for _, name in ipairs({ route, section }) do
    local known = entry(self, name)
    known.credit = math.min(CREDIT_MAX, known.credit + 1)
  end
end

-- The headers, in lower case, that responses of the route have named in Vary.
function routes:names(route)
  local known = self.all[route]
  return known and known.names or {}
end

-- Adds such headers. False if they are too many: then the page cannot be cached.
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
