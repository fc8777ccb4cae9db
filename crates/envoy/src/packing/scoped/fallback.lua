-- Finds the scope of a request whose Host has none as it is written: see packing/scoped.rs.
function envoy_on_request(request)
  local headers = request:headers()
  local key = headers:get("x-sesame-host") or ""
  local group = string.match(key, "^[^|]*")
  local host = string.lower(headers:get(":authority") or "")
  local own = group .. "|" .. host
  if own ~= key then
    headers:replace("x-sesame-host", own)
    request:clearRouteCache()
    request:metadata() -- asks for the route, so that it is looked up now
    if request:streamInfo():routeName() ~= "" then
      return
    end
  end
  headers:replace("x-sesame-host", group .. "|*")
  request:clearRouteCache()
end
