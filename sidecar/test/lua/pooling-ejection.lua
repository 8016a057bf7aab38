-- pooling/ejection.lua
local ejection = require('pooling.ejection')

-- For how long it is left alone when it fails now.
local function left_alone(state, now)
  ejection.failed(state, now, now)
  local till = now
  while ejection.is_on(state, till) do till = till + 10 end
  return till - now
end

test('who has not failed is not left alone', function()
  equal(ejection.is_on(ejection.none(), 0), false)
end)

test('twice as long each time in a row, half a minute at most', function()
  local state, now = ejection.none(), 5000
  for _, ms in ipairs({ 250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000 }) do
    equal(left_alone(state, now), ms)
    now = now + ms
  end
end)

test('questions that fail together are one time', function()
  local state = ejection.none()
  for late = 0, 240, 10 do ejection.failed(state, 5000 + late, 5000 + late) end
  equal(ejection.is_on(state, 5249), true)
  equal(ejection.is_on(state, 5250), false)
  -- One that was on its way before, and had more time.
  ejection.failed(state, 5000, 5500)
  equal(ejection.is_on(state, 5500), false)
  equal(left_alone(state, 5500), 500)
end)

test('after an answer it is the first time again', function()
  local state = ejection.none()
  left_alone(state, 0)
  left_alone(state, 1000)
  ejection.answered(state)
  equal(left_alone(state, 3000), 250)
end)
