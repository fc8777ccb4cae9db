-- Headers of requests that say where a request ends, whose it is and where it goes: see route/framing.rs.
local protected = {
  ":method", ":scheme", ":authority", ":path",
  "connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
  "proxy-authenticate", "proxy-authorization", "proxy-connection",
  "x-sesame-chain", "x-sesame-host", "x-sesame-server-name",
}

