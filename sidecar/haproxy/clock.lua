-- Milliseconds for how long something lasts, and for nothing else: HAProxy's own time. It stands still while HAProxy
-- does (a node that stalls, a container without CPU), and does not know when the machine's clock is put right; what it
-- has lost it never gets back. wall-clock.lua has the time that others mean.
return function()
  local now = core.now()
  return now.sec * 1000 + now.usec // 1000
end
