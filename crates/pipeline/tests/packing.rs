//! One packing against the other, through a real Envoy: requests are answered alike, and an edit costs what it should.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "packing/absent.rs"]
mod absent;
#[path = "packing/admin_pages.rs"]
mod admin_pages;
#[path = "packing/auth_headers.rs"]
mod auth_headers;
#[path = "packing/auth_service.rs"]
mod auth_service;
#[path = "packing/authorization.rs"]
mod authorization;
#[path = "packing/bad_tokens.rs"]
mod bad_tokens;
#[path = "packing/catch_all.rs"]
mod catch_all;
#[path = "packing/certificates.rs"]
mod certificates;
#[path = "packing/changes.rs"]
mod changes;
#[path = "packing/claims.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod claims;
#[path = "packing/edits.rs"]
mod edits;
#[path = "packing/equal_hosts.rs"]
mod equal_hosts;
#[path = "packing/forged.rs"]
mod forged;
#[path = "packing/grpc_health.rs"]
mod grpc_health;
#[path = "packing/holders.rs"]
mod holders;
#[path = "packing/http3.rs"]
mod http3;
#[path = "packing/limit_headers.rs"]
mod limit_headers;
#[path = "packing/limits.rs"]
mod limits;
#[path = "packing/matrix.rs"]
mod matrix;
#[path = "packing/modes.rs"]
mod modes;
#[path = "packing/on_demand.rs"]
mod on_demand;
#[path = "packing/plaintext_on_tls.rs"]
mod plaintext_on_tls;
#[path = "packing/protection.rs"]
mod protection;
#[path = "packing/proxy_protocol.rs"]
mod proxy_protocol;
#[path = "packing/redirects.rs"]
mod redirects;
#[path = "packing/requests.rs"]
mod requests;
#[path = "packing/rewrites.rs"]
mod rewrites;
#[path = "packing/series.rs"]
mod series;
#[path = "packing/slots.rs"]
mod slots;
#[path = "packing/split.rs"]
mod split;
#[path = "packing/sticky.rs"]
mod sticky;
#[path = "packing/streams.rs"]
mod streams;
#[path = "packing/tcp_clients.rs"]
mod tcp_clients;
#[path = "packing/tcp_mapping.rs"]
mod tcp_mapping;
#[path = "packing/timeouts.rs"]
mod timeouts;
#[path = "packing/tree.rs"]
mod tree;
#[path = "packing/wildcard_certificate.rs"]
mod wildcard_certificate;
#[path = "packing/world.rs"]
mod world;
