//! A connection of bytes: what comes is given back, until the client has said all it wants to say.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tracing::debug;

use crate::asks_who;
use crate::listen::Connection;

/// Serves one connection until its peer closes, or the backend stops.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(connection: &Connection, mut stream: S) {
    connection.requested();
    let stop = &connection.shared.stop;
    let ended = tokio::select! {
        biased;
        ended = echo(connection, &mut stream) => ended,
        () = stop.cancelled() => Ok(()),
    };
    if let Err(e) = ended {
        debug!(remote = %connection.remote, "connection broke: {e}");
    }
    let _ = stream.shutdown().await;
}

async fn echo<S: AsyncRead + AsyncWrite + Unpin>(connection: &Connection, stream: &mut S) -> std::io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    let mut first = true;
    loop {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        if std::mem::take(&mut first) && asks_who(&buffer[..n]) {
            let mut line = serde_json::to_vec(&connection.who())?;
            line.push(b'\n');
            stream.write_all(&line).await?;
        } else {
            stream.write_all(&buffer[..n]).await?;
        }
        stream.flush().await?;
    }
}
