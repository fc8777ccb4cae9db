//! A real rate limit service: Envoy's own, which counts in a Redis.
//!
//! In: its configuration as YAML, a domain with its descriptors. Out: a [`RateLimitService`] on an address of its own, which
//! answers gRPC in plaintext. It can be stopped and started again; what was counted stays in Redis.
//!
//! Windows of a minute or an hour begin with the clock's: a test that counts asks for limits by the hour.

use crate::net::Net;
use crate::process::{Command, Process};
use crate::start::StartError;
use crate::state::StateDir;
use std::net::SocketAddr;
use std::time::Duration;

const START: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(5);
const GRPC: u16 = 8081;

/// A running service.
#[derive(Debug)]
pub struct RateLimitService {
    address: SocketAddr,
    state: StateDir,
    redis: Process,
    redis_address: SocketAddr,
    service: Option<Process>,
}

impl RateLimitService {
    /// Starts Redis and the service, and waits until it answers.
    pub async fn start(config: &str) -> Result<RateLimitService, StartError> {
        let net = Net::here()?;
        let state = StateDir::new("rate-limit-service")?;
        let path = state.path().join("config");
        std::fs::create_dir(&path).map_err(|source| StartError::File { path, source })?;
        state.write("config/limits.yaml", config)?;
        let redis_address = net.socket(6379);
        let redis = Command::new(parts::program("redis-server")?)
            .args(["--bind", &redis_address.ip().to_string(), "--port", &redis_address.port().to_string()])
            .args(["--save", "", "--appendonly", "no", "--protected-mode", "no"])
            .start_in(&state)?;
        redis.expect_line("Ready to accept connections", START).await?;
        let mut service = RateLimitService { address: net.socket(GRPC), state, redis, redis_address, service: None };
        service.resume().await?;
        Ok(service)
    }

    /// Where it answers gRPC.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the service, not its Redis.
    pub async fn stop(&mut self) -> Result<(), StartError> {
        if let Some(service) = self.service.take() {
            service.stop(GRACE).await?;
        }
        Ok(())
    }

    /// Starts the service again, with what was counted before.
    pub async fn resume(&mut self) -> Result<(), StartError> {
        let host = self.address.ip().to_string();
        let [http, debug] = [8080, 6070].map(|port| SocketAddr::new(self.address.ip(), port));
        let service = Command::new(parts::program("ratelimit")?)
            .env("RUNTIME_ROOT", self.state.path())
            .env("RUNTIME_SUBDIRECTORY", "")
            .env("RUNTIME_WATCH_ROOT", "false")
            .env("REDIS_TYPE", "single")
            .env("REDIS_SOCKET_TYPE", "tcp")
            .env("REDIS_URL", self.redis_address.to_string())
            .env("USE_STATSD", "false")
            .env("HOST", &host)
            .env("PORT", http.port().to_string())
            .env("GRPC_HOST", &host)
            .env("GRPC_PORT", self.address.port().to_string())
            .env("DEBUG_HOST", &host)
            .env("DEBUG_PORT", debug.port().to_string())
            .start_in(&self.state)?;
        service.expect_http(http, "/healthcheck", START).await?;
        self.service = Some(service);
        Ok(())
    }

    /// The process of its Redis: log, signals.
    pub fn redis(&self) -> &Process {
        &self.redis
    }
}
