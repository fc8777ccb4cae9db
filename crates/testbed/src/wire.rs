//! A wire between two parties, which can be cut without either of them knowing before, led to somebody else, made slow, and
//! stalled.
//!
//! In: where it leads. Out: an address to connect to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Carries connections.
#[derive(Debug)]
pub struct Wire {
    address: SocketAddr,
    current: Arc<Mutex<Leads>>,
    delay: Delay,
    task: JoinHandle<()>,
}

/// How much later what clients send arrives.
type Delay = Arc<Mutex<Duration>>;

/// Where it leads now.
#[derive(Debug)]
struct Leads {
    /// Nowhere while it is cut.
    to: Option<SocketAddr>,
    /// Ends the connections that were made since.
    end: CancellationToken,
    /// Stalls the connections that were made since.
    stall: CancellationToken,
}

impl Leads {
    fn new(to: Option<SocketAddr>) -> Leads {
        Leads { to, end: CancellationToken::new(), stall: CancellationToken::new() }
    }
}

impl Wire {
    /// A wire from one address to another.
    pub async fn new(address: SocketAddr, to: SocketAddr) -> io::Result<Wire> {
        let listener = TcpListener::bind(address).await?;
        let current = Arc::new(Mutex::new(Leads::new(Some(to))));
        let delay = Delay::default();
        let (leads, delayed) = (current.clone(), delay.clone());
        let task = tokio::spawn(async move {
            while let Ok((here, _)) = listener.accept().await {
                let (to, end, stall) = {
                    let leads = leads.lock();
                    (leads.to, leads.end.clone(), leads.stall.clone())
                };
                if let Some(to) = to {
                    tokio::spawn(end.run_until_cancelled_owned(carry(here, to, delayed.clone(), stall)));
                }
            }
        });
        Ok(Wire { address, current, delay, task })
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

    /// From now on nothing arrives over the connections that are there, which stay open; new ones are carried.
    pub fn stall(&self) {
        let before = std::mem::take(&mut self.current.lock().stall);
        before.cancel();
    }

    /// From now on what clients send arrives that much later; answers are not delayed.
    pub fn delay(&self, by: Duration) {
        *self.delay.lock() = by;
    }

    fn lead(&self, to: Option<SocketAddr>) {
        let before = std::mem::replace(&mut *self.current.lock(), Leads::new(to));
        before.end.cancel();
    }
}

async fn carry(here: TcpStream, to: SocketAddr, delay: Delay, stall: CancellationToken) {
    let Ok(there) = TcpStream::connect(to).await else { return };
    let ((mut requests, mut to_client), (mut answers, mut to_server)) = (here.into_split(), there.into_split());
    let (sender, receiver) = mpsc::channel(WAITING);
    let back = async {
        copy(&mut answers, &mut to_client).await?;
        to_client.shutdown().await
    };
    let pass = async { tokio::join!(take(&mut requests, sender, delay), deliver(receiver, &mut to_server), back) };
    // Whoever ends it is who the test is about.
    if stall.run_until_cancelled(pass).await.is_none() {
        // Both sides keep their connection until the wire is cut.
        std::future::pending::<()>().await;
    }
}

/// How many reads of a client may wait to be delivered.
const WAITING: usize = 1_024;

/// Reads what a client sends, with the time at which it has to arrive.
async fn take(from: &mut OwnedReadHalf, to: mpsc::Sender<(Instant, Vec<u8>)>, delay: Delay) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = from.read(&mut buffer).await?;
        let due = Instant::now() + *delay.lock();
        if length == 0 || to.send((due, buffer[..length].to_vec())).await.is_err() {
            return Ok(());
        }
    }
}

async fn deliver(mut from: mpsc::Receiver<(Instant, Vec<u8>)>, to: &mut OwnedWriteHalf) -> io::Result<()> {
    while let Some((due, bytes)) = from.recv().await {
        tokio::time::sleep_until(due).await;
        to.write_all(&bytes).await?;
    }
    to.shutdown().await
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.cut();
        self.task.abort();
    }
}
