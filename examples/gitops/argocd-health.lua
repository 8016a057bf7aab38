-- Health of a RenderService for Argo CD: docs/gitops.md says how to install it. Plain Lua 5.1; obj is the resource.
local function condition(name)
  for _, found in ipairs(obj.status.conditions or {}) do
    if found.type == name then return found end
  end
  return {}
end

-- What the status says of an older spec counts for nothing: a sync would fail for a mistake that it mends.
if not obj.status or obj.status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "the operator has not seen this generation yet" }
end
local stalled, reconciling, ready = condition("Stalled"), condition("Reconciling"), condition("Ready")
if stalled.status == "True" then
  return { status = "Degraded", message = stalled.message }
end
if (obj.status.rollout or {}).phase == "Paused" then
  return { status = "Suspended", message = reconciling.message or "rollout.paused holds a change" }
end
if reconciling.status == "True" then
  return { status = "Progressing", message = reconciling.message }
end
if obj.spec.replicas == 0 then
  return { status = "Suspended", message = "scaled to 0 pods" }
end
if ready.status == "False" then
  return { status = "Degraded", message = ready.message }
end
if ready.status ~= "True" then
  return { status = "Progressing", message = ready.message or "not ready yet" }
end
local message = ready.message
if (obj.metadata.annotations or {})["corelane.dev/scaling-paused"] == "true" then
  message = message .. "; scaling is paused by the annotation corelane.dev/scaling-paused"
end
return { status = "Healthy", message = message }
