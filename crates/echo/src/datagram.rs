//! A UDP port: each datagram is sent back to where it came from.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::UdpSocket;
use tracing::debug;

use crate::asks_who;
use crate::running::Shared;

/// Serves until the backend stops.
pub(crate) async fn serve(shared: Arc<Shared>, socket: UdpSocket, local: SocketAddr) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let received = tokio::select! {
            biased;
            () = shared.end.cancelled() => return,
            () = shared.stop.cancelled() => return,
            received = socket.recv_from(&mut buffer) => received,
        };
        // An error here is an earlier reply that found nobody; the socket is as good as before.
        let Ok((n, remote)) = received else { continue };
        shared.requested();
        let sent = if asks_who(&buffer[..n]) {
            let who = serde_json::to_vec(&shared.who(remote, local, 0, None)).unwrap_or_default();
            socket.send_to(&who, remote).await
        } else {
            socket.send_to(&buffer[..n], remote).await
        };
        if let Err(e) = sent {
            debug!(%remote, "no reply sent: {e}");
        }
    }
}
