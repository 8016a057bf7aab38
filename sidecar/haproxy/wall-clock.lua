-- Milliseconds since 1970 by the machine's clock, as nginx and other pods have it; for what was said in such a time.
-- What HAProxy tells Lua (clock.lua) is another one.
return function(txn)
  return txn.f:date(0, 'ms')
end
