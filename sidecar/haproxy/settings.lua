-- Arguments of a `lua-load` line (key=value) as a table: numbers, but for those that are named in `texts`. All of
-- `keys` must be there. An error names `file`, and HAProxy does not start.
return function(file, arguments, keys, texts)
  local settings = {}
  for _, argument in ipairs(arguments) do
    local key, value = argument:match('^([%w-]+)=(%g+)$')
    if key and not (texts and texts[key]) then value = tonumber(value) end
    if not value then error(file .. ': argument "' .. argument .. '" is not key=value') end
    settings[key] = value
  end
  for _, key in ipairs(keys) do
    if not settings[key] then error(file .. ': argument ' .. key .. ' is missing') end
  end
  return settings
end
