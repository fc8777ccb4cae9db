//! A wire between two parties, which can be cut without either of them knowing before, and led to somebody else.
//!
//! In: where it leads. Out: an address to connect to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Carries connections.
#[derive(Debug)]
pub struct Wire {
    address: SocketAddr,
    current: Arc<Mutex<Leads>>,
    task: JoinHandle<()>,
}

/// Where it leads now.
#[derive(Debug)]
struct Leads {
    /// Nowhere while it is cut.
    to: Option<SocketAddr>,
    /// Ends the connections that were made since.
    end: CancellationToken,
}

impl Wire {
    /// A wire from one address to another.
    pub async fn new(address: SocketAddr, to: SocketAddr) -> io::Result<Wire> {
        let listener = TcpListener::bind(address).await?;
        let current = Arc::new(Mutex::new(Leads { to: Some(to), end: CancellationToken::new() }));
        let leads = current.clone();
        let task = tokio::spawn(async move {
            while let Ok((here, _)) = listener.accept().await {
                let (to, end) = {
                    let leads = leads.lock();
                    (leads.to, leads.end.clone())
                };
                if let Some(to) = to {
                    tokio::spawn(end.run_until_cancelled_owned(carry(here, to)));
                }
            }
        });
        Ok(Wire { address, current, task })
    }

    /// Where to connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts every connection, and refuses new ones.
    pub fn cut(&self) {
        self.lead(None);
    }

    /// Cuts every connection, and carries new ones there.
    pub fn lead_to(&self, to: SocketAddr) {
        self.lead(Some(to));
    }

    fn lead(&self, to: Option<SocketAddr>) {
        let before = std::mem::replace(&mut *self.current.lock(), Leads { to, end: CancellationToken::new() });
        before.end.cancel();
    }
}

async fn carry(mut here: TcpStream, to: SocketAddr) {
    if let Ok(mut there) = TcpStream::connect(to).await {
        // Whoever ends it is who the test is about.
        let _ended = copy_bidirectional(&mut here, &mut there).await;
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.cut();
        self.task.abort();
    }
}
