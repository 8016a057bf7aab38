-- Who asks: processes that have shown what only a pod with the key of the RenderService can know.

local keys = require('peers.keys')
local tokens = require('peers.tokens')

-- What a process shows is computed once.
local ASKERS_MAX = 1024

local askers, askers_count = {}, 0 -- by identity: { identity, key, question, answer }

keys.on_change(function() askers, askers_count = {}, 0 end)

-- Addresses of this pod, at most one of each family. Not `dst`, which whoever opens the connection can write into the
-- head of the PROXY protocol: a stranger at an address that was a peer's could let another pod answer for him, and
-- stand between the two.
local own_addresses = {}
for address in (os.getenv('CORELANE_POD_IPS') or ''):gmatch('[%x.:]+') do
  if #own_addresses < 2 then own_addresses[#own_addresses + 1] = address end
end

-- The process `from` if its token is one for this process.
local function known(from, token)
  if not tokens.is_token(from) or from == tokens.identity then return nil end
  local asker = askers[from]
  if asker and tokens.same(token, asker.question) then return asker end
  for _, key in ipairs(keys.all()) do
    local question = tokens.pair(key.text, 'question', from, tokens.identity)
    if tokens.same(token, question) then
      if askers_count >= ASKERS_MAX then askers, askers_count = {}, 0 end
      if not asker then askers_count = askers_count + 1 end
      local answer = tokens.pair(key.text, 'answer', tokens.identity, from)
      askers[from] = { identity = from, key = key.text, question = question, answer = answer }
      return askers[from]
    end
  end
end

-- To somebody who does not know which process this is: the token that tells, if he has the key and has meant this pod.
local function welcome(from, shown)
  if not tokens.is_token(from) then return nil end
  for token in shown:sub(1, 128):gmatch('%x+') do
    for _, key in ipairs(keys.all()) do
      for _, address in ipairs(own_addresses) do
        if tokens.same(token, (tokens.pair(key.text, 'hello', from, address))) then
          return (tokens.pair(key.text, 'welcome', tokens.identity, from, address))
        end
      end
    end
  end
end

-- A process that has shown it, by its identity, as long as it is remembered.
local function at(identity) return identity and askers[identity] end

return { at = at, known = known, own_addresses = own_addresses, welcome = welcome }
