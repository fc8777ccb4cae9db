//! The private network of a test process, and addresses in it.
//!
//! In: the sandbox that `tools/sandbox` made. Out: addresses that nobody else has. Every address of 198.18.0.0/17 is
//! local there, so a listener gets an address of its own and may then use any port it likes, 80 and 443 too; the range is
//! one that an API server accepts in EndpointSlices, which loopback addresses are not.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::report::debug_as_report;

/// The last address of the range; never handed out, so binding it tells whether the range is local here.
const LAST: Ipv4Addr = Ipv4Addr::new(198, 18, 127, 255);

/// There is no private network here.
#[derive(thiserror::Error)]
pub enum Error {
    /// The process was started without the sandbox.
    #[error("this test needs its own network: start it with `cargo test`, or with `tools/sandbox -- PROGRAM`")]
    NoSandbox,
    /// The sandbox could not be made on this machine.
    #[error("this test needs its own network, and there is none: {0}")]
    Refused(String),
    /// The sandbox is there but its addresses are not.
    #[error("the addresses of the test network are not local here")]
    NoAddresses(#[source] std::io::Error),
}
debug_as_report!(Error);

/// The network of this test process.
#[derive(Clone, Copy, Debug)]
pub struct Net(());

impl Net {
    /// The network that `tools/sandbox` made for this process.
    pub fn here() -> Result<Net, Error> {
        if std::env::var_os("SESAME_SANDBOX").is_none() {
            return Err(std::env::var("SESAME_SANDBOX_MISSING").map_or(Error::NoSandbox, Error::Refused));
        }
        UdpSocket::bind((LAST, 0)).map_err(Error::NoAddresses)?;
        Ok(Net(()))
    }

    /// An address of one's own, never given twice in this process: all its ports are free.
    pub fn address(&self) -> Ipv4Addr {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // 254 addresses in each /24: some programs take .0 and .255 for a network and its broadcast address.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let [_, _, block, host] = (number / 254 * 256 + number % 254 + 1).to_be_bytes();
        assert!(number < 128 * 254, "all 32512 addresses of the test network were handed out");
        Ipv4Addr::new(198, 18, block, host)
    }

    /// An address of one's own with this port.
    pub fn socket(&self, port: u16) -> SocketAddr {
        (self.address(), port).into()
    }
}
