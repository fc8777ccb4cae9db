-- Gives a request back what a rate limit service may have changed.
function envoy_on_request(request)
  local noted = request:streamInfo():dynamicMetadata():get("sesame.request")
  if not request:filterContext():get("limited") or noted == nil then
    return
  end
  local headers = request:headers()
  for _, name in ipairs(protected) do
    local now, before = headers:get(name), noted[name]
    if before == nil and now ~= nil then
      headers:remove(name)
    elseif before ~= now then
      headers:replace(name, before)
    end
  end
end

-- Notes what a response has, before headers of servers are added to it.
function envoy_on_response(response)
  local headers, metadata = response:headers(), response:streamInfo():dynamicMetadata()
  local length = headers:get("content-length")
  if length then
    metadata:set("sesame.response", "length", length)
  end
  metadata:set("sesame.response", "status", headers:get(":status"))
end
