-- Herds: requests for one page that come while it is rendered. Computes only; who waits, waits in HAProxy's queue of a
-- place (haproxy/cache.ts), from which one comes out at a time.
--
-- What becomes of a herd belongs to the herd, and not to a moment: whoever has joined it gets that, however late he
-- comes out. A herd whose renders fail is over after so many tries, whoever still stands in it.
local herds = {}
herds.__index = herds

-- nginx may have looked for a page just before it was there, and its question comes just after all others have gone.
local GRACE_MS = 1000
-- One that nothing has become of, and in whose place nobody is: its request has gone without a word.
local LOST_MS = 1000
-- So long a herd waits for a render alone, which tells whether its page fails for everybody.
local LONE_MS = 5000
-- Whoever is between queue and turn is there at once. So long on a machine that stands still.
local KEEP_MS = 60000
local PASSES_MAX = 20000
-- A page that has not been found so often where it should be cannot be kept.
local ROUNDS_MAX = 3
local NOT_FOUND_MS = 10000

-- `settings`: 'places', 'tries', 'pass-ms'. `is_idle(place)`: whether nobody stands in it.
local function new(settings, is_idle)
  return setmetatable({
    settings = settings,
    is_idle = is_idle,
    open = {}, -- by key: the herd that who comes now joins
    by_id = {},
    at = {}, -- by place
    fillers = {}, -- by token: the herd of a request that goes on for all
    lone = {}, -- by token: the herd of a request that is rendered alone because the render of the herd has failed
    kept = {}, -- herds without a place in which somebody may still be
    passes = {}, -- by key: until when its responses cannot be cached, and why
    passes_count = 0,
    last_id = 0,
    last_place = 0,
  }, herds)
end

local function close(self, herd)
  if self.open[herd.key] == herd then self.open[herd.key] = nil end
end

local function drop(self, herd)
  close(self, herd)
  self.by_id[herd.id] = nil
  for token in pairs(herd.fillers) do
    if self.fillers[token] == herd then self.fillers[token] = nil end
  end
end

-- All who stood in it have gone on, and nobody comes back.
local function is_empty(herd)
  return herd.joined == herd.turned and not next(herd.fillers)
end

-- The place is for another herd from now on.
local function leave(self, herd, now)
  self.at[herd.place] = nil
  close(self, herd)
  if is_empty(herd) then return drop(self, herd) end
  herd.left_ms = now
  self.kept[#self.kept + 1] = herd
end

-- Whether a herd has to wait for a render alone.
function herds.awaits_lone(_, herd, now)
  return not herd.outcome and herd.lone_until_ms ~= nil and now < herd.lone_until_ms
end

-- Nobody is in it, and nothing has become of it.
local function is_lost(self, herd, now)
  return now - herd.changed_ms > LOST_MS and self.is_idle(herd.place)
end

-- Whoever asks for pages that fail, each of them once, must not have all the places for as long as herds get lost.
local function is_over(self, herd)
  local has_no_page = herd.failures > 0 or herd.is_refused
  return (herd.outcome or has_no_page and is_empty(herd)) and self.is_idle(herd.place)
end

local function free_place(self, now)
  for _ = 1, self.settings['places'] do
    self.last_place = (self.last_place + 1) % self.settings['places']
    local old = self.at[self.last_place]
    if not old or is_lost(self, old, now) or is_over(self, old) then
      if old then leave(self, old, now) end
      return self.last_place
    end
  end
end

-- Whether who comes now finds his page there: it is being written, or was just now.
local function is_fresh(self, herd, now)
  if not self.is_idle(herd.place) then return true end
  if now - herd.changed_ms > 2 * GRACE_MS then return false end
  herd.idle_ms = herd.idle_ms or now
  return now - herd.idle_ms <= GRACE_MS
end

function herds:note_pass(key, why, now, keep_ms)
  if self.passes_count >= PASSES_MAX then self.passes, self.passes_count = {}, 0 end
  if not self.passes[key] then self.passes_count = self.passes_count + 1 end
  self.passes[key] = { until_ms = now + (keep_ms or self.settings['pass-ms']), why = why }
end

-- Why pages of a key cannot be cached; nil if that is not known.
function herds:why_pass(key, now)
  local pass = self.passes[key]
  return pass and now < pass.until_ms and pass.why or nil
end

local function found(self, key, token, is_again, told, now)
  local own = is_again and self.fillers[token]
  if own then
    if own.fillers[token] == 'home' then
      self:left_home(own, token, now)
    elseif own.fillers[token] then
      -- It has died with a worker, and stands behind all others now.
      self:failed(own, 502, 'worker-died', true, now)
    end
    self.fillers[token], own.fillers[token] = nil, nil
    return own
  end
  local herd = self.open[key]
  if not herd then return nil end
  if not herd.outcome then
    return (self:awaits_lone(herd, now) or not is_lost(self, herd, now)) and herd or nil
  end
  -- Only a page is still for those who come: and not for whom this very page was none.
  return herd.outcome == 'filled' and herd.id ~= told and is_fresh(self, herd, now) and herd or nil
end

-- Nobody has answered this one.
function herds:unanswered(herd, token, now)
  -- Counted: it may come back.
  if herd.fillers[token] then herd.fillers[token] = false end
  self:failed(herd, 502, 'worker-died', true, now)
end

-- Whether there is a herd that a request would join.
function herds:has(key, told, now)
  return found(self, key, nil, false, told, now) ~= nil
end

-- The herd of a request: one that is there, or a new one. The second value is the reason if its page is known not to
-- be cacheable. Neither: there is no place. `rounds` has a digit for each time that the request did not find its page:
-- 1 if a herd had rendered it (the last one is `told`), 0 if the page had to be rendered in another way.
function herds:join(key, token, is_again, rounds, told, now)
  local why = self:why_pass(key, now)
  if why then return nil, why end
  if #rounds >= ROUNDS_MAX then
    if not rounds:find('0', 1, true) then self:note_pass(key, 'not-found', now, NOT_FOUND_MS) end
    return nil, 'not-found'
  end
  local herd = found(self, key, token, is_again, told, now)
  if not herd then
    local old = self.open[key]
    if old then close(self, old) end
    local place = free_place(self, now)
    if not place then return nil end
    self.last_id = self.last_id + 1
    herd = {
      id = self.last_id, key = key, place = place, joined = 0, turned = 0, failures = 0, fillers = {}, changed_ms = now,
    }
    self.open[key], self.by_id[herd.id], self.at[place] = herd, herd, herd
  end
  herd.joined = herd.joined + 1
  return herd
end

-- It is the turn of a request: the herd, and whether the request is to go on for all.
function herds:turn(id, token, now)
  local herd = self.by_id[id]
  if not herd then return nil, true end
  herd.turned = herd.turned + 1
  if herd.outcome then return herd, false end
  herd.changed_ms = now
  herd.fillers[token], self.fillers[token] = true, herd
  return herd, true
end

local function settle(self, herd, outcome, now)
  herd.outcome, herd.changed_ms = outcome, now
  if outcome ~= 'filled' then close(self, herd) end
end

-- What the request has come back with.
function herds:answered(herd, token)
  herd.fillers[token] = nil
  if self.fillers[token] == herd then self.fillers[token] = nil end
end

-- It goes to the home of its page, which may end without a word.
function herds:goes_home(herd, token) herd.fillers[token] = 'home' end

-- Its home had no page: no render has failed, and nobody asks there any more.
function herds:left_home(herd, token, now)
  self:answered(herd, token)
  herd.has_no_home, herd.changed_ms = true, now
end

function herds:filled(herd, now) settle(self, herd, 'filled', now) end

-- The page is for nobody else, and none of this key is for some time.
function herds:pass(herd, why, now)
  self:note_pass(herd.key, why, now)
  herd.why = why
  settle(self, herd, 'pass', now)
end

-- The render of a request was for its own client, or did not get a header that the page varies by. The others go on.
function herds:again(herd, token, now)
  self:answered(herd, token)
  herd.changed_ms = now
end

-- The client of a request is refused, and nothing was rendered. The others go on.
function herds:refused(herd, token, now)
  self:again(herd, token, now)
  herd.is_refused = true
end

-- A render has failed. `died`: nobody has answered. If the page does not fail alone, the others go on alone, too.
function herds:failed(herd, status, reason, died, now)
  if herd.outcome then return end
  herd.failures = herd.failures + 1
  herd.died = died
  herd.changed_ms = now
  if herd.failures < self.settings['tries'] then return end
  if herd.is_fine_alone then return self:pass(herd, 'error', now) end
  herd.status, herd.reason = status, reason
  settle(self, herd, 'failed', now)
end

-- The render of a request has failed, and is done again alone.
function herds:goes_alone(herd, token, now)
  herd.lone_until_ms = now + LONE_MS
  self.lone[token] = herd
end

-- The render alone has ended, well or not.
function herds:lone_answered(token, has_failed, now)
  local herd = self.lone[token]
  if not herd then return end
  self.lone[token], herd.lone_until_ms = nil, nil
  if has_failed then self:failed(herd, 503, 'render-failed', false, now) else herd.is_fine_alone = true end
end

-- From time to time: forgets what nobody will ask for.
function herds:sweep(now)
  for token, herd in pairs(self.lone) do
    if not herd.lone_until_ms or now >= herd.lone_until_ms then self.lone[token] = nil end
  end
  for key, pass in pairs(self.passes) do
    if now >= pass.until_ms then
      self.passes[key] = nil
      self.passes_count = self.passes_count - 1
    end
  end
  local kept = {}
  for _, herd in ipairs(self.kept) do
    if now - herd.left_ms < KEEP_MS then kept[#kept + 1] = herd else drop(self, herd) end
  end
  self.kept = kept
end

return new
