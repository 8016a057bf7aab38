-- Who wants to know that the watchdog has killed a worker because of a request.
local listeners = {}

return {
  -- Calls `listener(url, client, worker, requests, at)`; `requests` is how many the worker had, `at` tells this kill of
  -- the worker from its others.
  on_kill = function(listener) listeners[#listeners + 1] = listener end,

  tell = function(...)
    for _, listener in ipairs(listeners) do listener(...) end
  end,
}
