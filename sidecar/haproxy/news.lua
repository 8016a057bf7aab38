-- What several coroutines wait for: `wait()` returns when somebody calls `wake()`. So it costs one look, whoever has
-- it, and not one for each that waits.
return function()
  local waiting = {}
  return {
    wait = function()
      local queue = core.queue()
      waiting[#waiting + 1] = queue
      queue:pop_wait()
    end,
    wake = function()
      local woken = waiting
      waiting = {}
      for _, queue in ipairs(woken) do queue:push(true) end
    end,
  }
end
