//! The connections of a load, kept alive between its requests.
//!
//! HTTP/1.1: a request takes an idle connection or opens one. HTTP/2: a fixed number of connections that requests share;
//! one that has closed is opened anew.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::client::{Answer, Client, Connection, Failure};

pub(super) struct Pool {
    client: Client,
    kind: Kind,
    opened: AtomicU64,
}

enum Kind {
    Idle(Mutex<Vec<Connection>>),
    /// The lock is held while a connection is opened, so that its users wait for one and don't open many.
    Shared(Vec<tokio::sync::Mutex<Option<Connection>>>),
}

/// Where a connection that was taken belongs.
pub(super) type Slot = usize;

impl Pool {
    pub fn new(client: Client, connections: usize) -> Pool {
        let kind = match client.is_http2() {
            true => Kind::Shared((0..connections).map(|_| Default::default()).collect()),
            false => Kind::Idle(Mutex::default()),
        };
        Pool { client, kind, opened: AtomicU64::new(0) }
    }

    /// How many connections were opened.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// A connection for the n-th request.
    pub async fn take(&self, number: u64) -> Result<(Connection, Slot), Failure> {
        match &self.kind {
            Kind::Idle(idle) => {
                while let Some(connection) = { idle.lock().pop() } {
                    if connection.is_open() {
                        return Ok((connection, 0));
                    }
                }
                Ok((self.open().await?, 0))
            }
            Kind::Shared(slots) => {
                let slot = (number % slots.len() as u64) as usize;
                let mut held = slots[slot].lock().await;
                if let Some(connection) = held.as_ref().filter(|connection| connection.is_open()) {
                    return Ok((connection.clone(), slot));
                }
                let connection = self.open().await?;
                *held = Some(connection.clone());
                Ok((connection, slot))
            }
        }
    }

    async fn open(&self) -> Result<Connection, Failure> {
        let connection = self.client.connect().await?;
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(connection)
    }

    /// A connection whose answer was read is free again, unless the server said that it is the last.
    pub fn give_back(&self, connection: Connection, answer: &Answer) {
        let last = answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if let Kind::Idle(idle) = &self.kind
            && !last
            && connection.is_open()
        {
            idle.lock().push(connection);
        }
    }

    /// A connection that failed a request is not used for another.
    pub async fn discard(&self, slot: Slot, connection: &Connection) {
        if let Kind::Shared(slots) = &self.kind {
            let mut held = slots[slot].lock().await;
            if held.as_ref().is_some_and(|current| current.is_same(connection)) {
                *held = None;
            }
        }
    }
}
