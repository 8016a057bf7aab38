-- Runs `work` again and again, in a task of HAProxy. An error in it (HAProxy is out of some resource) must not end what
-- it does for ever.
return function(work)
  core.register_task(function()
    while true do
      local ok, message = pcall(work)
      if not ok then
        core.log(core.warning, 'pooling: ' .. tostring(message))
        core.msleep(1000)
      end
    end
  end)
end
