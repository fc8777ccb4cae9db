//! A gRPC server that is broken, whatever it is asked.
//!
//! In: [how](Fault). Out: a [`BrokenServer`] on an address of its own, which takes connections in plaintext.

use bytes::Bytes;
use h2::{Reason, RecvStream, server::SendResponse};
use http::{HeaderMap, HeaderValue, Request, Response};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::backend::Error;

/// What is wrong with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It takes calls and never answers.
    Hangs,
    /// It resets every call.
    Resets,
    /// It answers with bytes that are no HTTP/2.
    NotHttp2,
    /// It answers as a web server does.
    NotGrpc,
    /// It answers with bytes that are no message.
    NoMessage,
    /// It closes every connection.
    Closes,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 6] =
        [Fault::Hangs, Fault::Resets, Fault::NotHttp2, Fault::NotGrpc, Fault::NoMessage, Fault::Closes];
}

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct BrokenServer {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl BrokenServer {
    /// Starts one.
    pub async fn start(fault: Fault) -> Result<BrokenServer, Error> {
        let address = crate::Net::here()?.socket(80);
        let listener = TcpListener::bind(address).await.map_err(Error::Listen)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(stream, fault));
            }
        });
        Ok(BrokenServer { address, _tasks: tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn connection(mut stream: TcpStream, fault: Fault) {
    match fault {
        Fault::Closes => {}
        Fault::NotHttp2 => {
            let mut asked = [0; 1024];
            while stream.read(&mut asked).await.is_ok_and(|read| read > 0) {
                if stream.write_all(&[0xff; 512]).await.is_err() {
                    return;
                }
            }
        }
        Fault::Hangs | Fault::Resets | Fault::NotGrpc | Fault::NoMessage => {
            let Ok(mut connection) = h2::server::handshake(stream).await else { return };
            let mut held = Vec::new();
            while let Some(Ok((request, respond))) = connection.accept().await {
                held.extend(call(request, respond, fault));
            }
        }
    }
}

/// Answers a call, or gives back what keeps it open.
fn call(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    fault: Fault,
) -> Option<(Request<RecvStream>, SendResponse<Bytes>)> {
    let answer = |content_type: &'static str| {
        Response::builder().header("content-type", content_type).body(()).unwrap_or_default()
    };
    let sent = match fault {
        Fault::Hangs => return Some((request, respond)),
        Fault::NotGrpc => respond
            .send_response(answer("text/html"), false)
            .and_then(|mut stream| stream.send_data(Bytes::from_static(b"<html></html>"), true)),
        Fault::NoMessage => respond.send_response(answer("application/grpc"), false).and_then(|mut stream| {
            stream.send_data(Bytes::from_static(b"\0\0\0\0\x04\xff\xff\xff\xff"), false)?;
            let trailers =
                HeaderMap::from_iter([(http::HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"))]);
            stream.send_trailers(trailers)
        }),
        Fault::Resets | Fault::NotHttp2 | Fault::Closes => {
            respond.send_reset(Reason::INTERNAL_ERROR);
            Ok(())
        }
    };
    let _gone = sent;
    None
}
