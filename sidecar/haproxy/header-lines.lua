-- Reads headers as HAProxy gives them to Lua (txn.http:req_get_headers, res_get_headers): returns a function that gives
-- the lines of a header, by its name in lower case, in their order.
return function(headers)
  return function(name)
    local lines, values = {}, headers[name]
    if not values then return lines end
    -- HAProxy counts them from 0, its HTTP client from 1.
    local index = values[0] and 0 or 1
    while values[index] do
      lines[#lines + 1] = values[index]
      index = index + 1
    end
    return lines
  end
end
