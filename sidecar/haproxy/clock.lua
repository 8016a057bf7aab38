-- Milliseconds of the wall clock.
return function()
  local now = core.now()
  return now.sec * 1000 + now.usec // 1000
end
