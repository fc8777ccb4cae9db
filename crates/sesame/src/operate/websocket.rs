//! Frames of WebSocket (RFC 6455), the client's side, as far as a port-forward needs them.
//!
//! In: bytes. Out: frames, and the other way round. Binary messages only, no extensions. Fifty lines of our own, because the library
//! that the client of the API server would use brings a dozen crates for one command.

use std::io;

use aws_lc_rs::rand;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A frame that is longer is refused; the kubelet sends some tens of kilobytes at a time.
const LONGEST: u64 = 16 << 20;

const FIN: u8 = 0x80;
const MASK: u8 = 0x80;
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// What a server sends.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// The beginning of a message, or all of it.
    Begin(Vec<u8>),
    /// More of the message before it.
    More(Vec<u8>),
    /// To be answered by a pong with the same bytes.
    Ping(Vec<u8>),
    /// The end.
    Close,
}

/// The next frame; pongs are skipped.
pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Frame> {
    loop {
        let mut head = [0; 2];
        from.read_exact(&mut head).await?;
        let length = match head[1] & !MASK {
            126 => u64::from(from.read_u16().await?),
            127 => from.read_u64().await?,
            length => u64::from(length),
        };
        if head[1] & MASK != 0 || length > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame that no server sends"));
        }
        let mut payload = vec![0; usize::try_from(length).unwrap_or_default()];
        from.read_exact(&mut payload).await?;
        return Ok(match head[0] & 0x0f {
            CONTINUATION => Frame::More(payload),
            TEXT | BINARY => Frame::Begin(payload),
            PING => Frame::Ping(payload),
            CLOSE => Frame::Close,
            PONG => continue,
            other => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of type {other}"))),
        });
    }
}

/// Sends a binary message.
pub async fn write_binary(to: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    write(to, BINARY, message).await
}

/// Answers a ping.
pub async fn write_pong(to: &mut (impl AsyncWrite + Unpin), payload: &[u8]) -> io::Result<()> {
    write(to, PONG, payload).await
}

async fn write(to: &mut (impl AsyncWrite + Unpin), opcode: u8, payload: &[u8]) -> io::Result<()> {
    let mut mask = [0; 4];
    rand::fill(&mut mask).map_err(|_| io::Error::other("no random numbers"))?;
    let mut frame = vec![FIN | opcode];
    match payload.len() {
        length @ 0..=125 => frame.push(MASK | length as u8),
        length @ 126..=0xffff => {
            frame.push(MASK | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(MASK | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    to.write_all(&frame).await?;
    to.flush().await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[tokio::test]
    async fn frames_of_a_server_are_read_in_all_lengths() {
        let mut bytes = vec![0x82, 3, 0, 1, 2, 0x8a, 0, 0x89, 1, 9];
        bytes.extend([0x02, 126, 1, 0]);
        bytes.extend([7; 256]);
        bytes.extend([0x80, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
        bytes.extend([8; 65536]);
        bytes.extend([0x88, 0]);
        let mut from = bytes.as_slice();
        assert_eq!(read(&mut from).await.unwrap(), Frame::Begin(vec![0, 1, 2]));
        assert_eq!(read(&mut from).await.unwrap(), Frame::Ping(vec![9]), "the pong before it is skipped");
        assert_eq!(read(&mut from).await.unwrap(), Frame::Begin(vec![7; 256]));
        assert_eq!(read(&mut from).await.unwrap(), Frame::More(vec![8; 65536]));
        assert_eq!(read(&mut from).await.unwrap(), Frame::Close);
        assert!(read(&mut from).await.is_err(), "there is nothing more");
        let too_long = [0x82, 127, 0, 0, 0, 1, 0, 0, 0, 0];
        assert_eq!(read(&mut too_long.as_slice()).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
        let masked = [0x82, 0x81, 0, 0, 0, 0, 1];
        assert_eq!(read(&mut masked.as_slice()).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[tokio::test]
    async fn what_a_client_sends_is_masked() {
        for length in [0, 5, 125, 126, 0xffff, 0x10000] {
            let message = vec![0x55; length];
            let mut sent = Vec::new();
            write_binary(&mut sent, &message).await.unwrap();
            let (head, rest) = sent.split_at(sent.len() - length);
            let mask = &head[head.len() - 4..];
            let unmasked: Vec<u8> = rest.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
            assert_eq!((sent[0], sent[1] & MASK, unmasked), (0x82, MASK, message));
        }
    }
}
