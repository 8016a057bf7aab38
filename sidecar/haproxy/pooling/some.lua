-- One after the other of a list, in a random order: the list is put into that order as far as one goes, and not copied,
-- so that a few of a thousand cost a few steps. Others may do the same with it meanwhile.
return function(list)
  local index = 0
  return function()
    if index >= #list then return nil end
    index = index + 1
    local other = math.random(index, #list)
    list[index], list[other] = list[other], list[index]
    return list[index]
  end
end
