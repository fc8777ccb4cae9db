-- Changes responses, notes headers of requests, and refuses bodies that are too long: see route/response_script.rs. What to do is in the
-- filter's context.
local function trimmed(text)
  return string.match(text, "^%s*(.-)%s*$")
end

local function rewritten(cookie, changes)
  local name = string.match(cookie, "^%s*([^=;]-)%s*=")
  local change = name and changes[name]
  if not change then
    return cookie
  end
  local parts = {}
  for part in string.gmatch(cookie, "[^;]+") do
    local attribute = string.lower(trimmed(string.match(part, "^[^=]*")))
    if #parts == 0 or change[attribute] == nil then
      parts[#parts + 1] = trimmed(part)
    end
  end
  if change.path then parts[#parts + 1] = "Path=" .. change.path end
  if change.domain then parts[#parts + 1] = "Domain=" .. change.domain end
  if change.secure then parts[#parts + 1] = "Secure" end
  if change.samesite then parts[#parts + 1] = "SameSite=" .. change.samesite end
  return table.concat(parts, "; ")
end

-- Changes attributes of the cookies that a backend sets.
local function rewrite_cookies(headers, changes)
  if not headers:get("set-cookie") then
    return
  end
  local cookies = {}
  for name, value in pairs(headers) do
    if name == "set-cookie" then
      cookies[#cookies + 1] = value
    end
  end
  headers:remove("set-cookie")
  for _, cookie in ipairs(cookies) do
    headers:add("set-cookie", rewritten(cookie, changes))
  end
end

-- Gives a response the length and the status that it had before a server that is asked about requests added headers to it.
local function restore(headers, noted)
  if noted ~= nil and noted["length"] ~= nil then
    headers:replace("content-length", noted["length"])
  else
    headers:remove("content-length")
  end
  if noted ~= nil and noted["status"] ~= nil then
    headers:replace(":status", noted["status"])
  end
end

-- Whether a request says that its body is longer than this.
local function is_longer(headers, most)
  local length = tonumber(headers:get("content-length") or "")
  return length ~= nil and length > most
end

-- Refuses a request whose body is too long for its authorization server, as Envoy does; notes what a rate limit service may not change.
function envoy_on_request(request)
  local context = request:filterContext()
  local most = context:get("max_request_bytes")
  if most and is_longer(request:headers(), most) then
    request:respond({[":status"] = "413"}, "Payload Too Large")
    return
  end
  if not context:get("notes") then
    return
  end
  local headers, metadata = request:headers(), request:streamInfo():dynamicMetadata()
  for _, name in ipairs(protected) do
    local value = headers:get(name)
    if value then
      metadata:set("sesame.request", name, value)
    end
  end
end

function envoy_on_response(response)
  local context, headers = response:filterContext(), response:headers()
  local noted = context:get("noted")
  if noted then
    restore(headers, response:streamInfo():dynamicMetadata():get(noted))
  end
  local cookies = context:get("cookies")
  if cookies then
    rewrite_cookies(headers, cookies)
  end
end
