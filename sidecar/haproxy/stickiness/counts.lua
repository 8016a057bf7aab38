-- What has become of requests for another revision, and of files that were looked for: for the page of metrics.
local counts = { kept = { id = 0, cookie = 0 }, lost = { id = 0, cookie = 0 }, files = { found = 0, missing = 0, limited = 0 } }

-- `by`: "id" or "cookie"; whether a pod of that revision has taken it.
function counts.keep(by, is_kept)
  local what = is_kept and counts.kept or counts.lost
  what[by] = what[by] + 1
end

-- "found", "missing" or "limited".
function counts.look(result) counts.files[result] = counts.files[result] + 1 end

local FAMILIES = {
  { 'kept', 'corelane_sticky_requests_total', 'by', { 'id', 'cookie' }, 'Requests that were led to another revision, which they name.' },
  { 'lost', 'corelane_sticky_fallbacks_total', 'by', { 'id', 'cookie' }, 'Requests for another revision of which no pod took them.' },
  { 'files', 'corelane_sticky_files_total', 'result', { 'found', 'missing', 'limited' }, 'Files that were looked for in pods of other revisions.' },
}

-- Adds them to a page of metrics: each family once there has been anything of it.
function counts.add(page)
  for _, family in ipairs(FAMILIES) do
    local what, name, label, values, help = table.unpack(family)
    local sum = 0
    for _, value in ipairs(values) do sum = sum + counts[what][value] end
    if sum > 0 then
      page.describe(name, 'counter', help)
      for _, value in ipairs(values) do page.sample(name, '{' .. label .. '="' .. value .. '"}', counts[what][value]) end
    end
  end
end

return counts
