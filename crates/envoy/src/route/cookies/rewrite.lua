-- Changes attributes of the cookies that a backend sets: see route/cookies.rs. What to change is in the filter's context.
local function trimmed(text)
  return string.match(text, "^%s*(.-)%s*$")
end

local function rewritten(cookie, changes)
  local name = string.match(cookie, "^%s*([^=;]-)%s*=")
  local change = name and changes:get(name)
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

function envoy_on_response(response)
  local headers = response:headers()
  if not headers:get("set-cookie") then
    return
  end
  local cookies = {}
  for name, value in pairs(headers) do
    if name == "set-cookie" then
      cookies[#cookies + 1] = value
    end
  end
  local changes = response:filterContext()
  headers:remove("set-cookie")
  for _, cookie in ipairs(cookies) do
    headers:add("set-cookie", rewritten(cookie, changes))
  end
end
