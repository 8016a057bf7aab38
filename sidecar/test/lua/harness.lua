-- Runs tests while HAProxy reads its configuration: an error in one ends that, with its name.

function equal(actual, expected)
  if actual ~= expected then error('expected ' .. tostring(expected) .. ', got ' .. tostring(actual), 2) end
end

function test(name, run)
  local ok, message = pcall(run)
  if not ok then error(name .. ': ' .. tostring(message)) end
end
