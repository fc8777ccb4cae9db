//! An authorization server that decides by what the client says: Envoy's gRPC API, over h2c and over TLS.
//!
//! In: calls of `Check`. Out: what the header `x-auth` of the client's request asks for.
//!
//! | `x-auth` | answer |
//! |---|---|
//! | `deny` | 401, with the header `x-auth-by` |
//! | `deny NAME=VALUE` | 401 without a body, with this header |
//! | `deny STATUS` | this status |
//! | `hang` | none |
//! | `reset` | the stream is reset |
//! | `garbage` | bytes that are no message |
//! | `set NAME=VALUE` | allowed; the backend is sent this header, too |
//! | `append NAME=VALUE` | the same, beside what the request has of it |
//! | `remove NAME` | allowed; the backend is not sent this header |
//! | `answer NAME=VALUE` | allowed; the client is sent this header, too |
//! | anything else, or nothing | allowed |
//!
//! What it allows reaches the backend with `x-auth-by` (the server), `x-auth-context` (what it was told besides), `x-auth-body`
//! (how many bytes of the body), `x-auth-raw-body` (how many of them it was sent as bytes and not as text), `x-auth-partial` (whether it was
//! told that these are not all) and `x-auth-own` (how many headers of Sesame's own it was shown).

use bytes::{Bytes, BytesMut};
use envoy_api::{
    Message,
    envoy::{
        config::core::v3::{HeaderValue, HeaderValueOption, header_value_option::HeaderAppendAction},
        service::auth::v3::{
            AttributeContext, CheckRequest, CheckResponse, DeniedHttpResponse, OkHttpResponse,
            check_response::HttpResponse,
        },
        r#type::v3::HttpStatus,
    },
    google::rpc::Status,
};
use h2::{Reason, RecvStream, server::SendResponse};
use http::{HeaderMap, Request, Response};
use rustls::ServerConfig;
use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use crate::backend::Error;

/// Its gRPC codes.
const OK: i32 = 0;
const PERMISSION_DENIED: i32 = 7;

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct AuthServer {
    ip: Ipv4Addr,
    asked: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

impl AuthServer {
    /// Starts one at an address of its own: port 80 for h2c, port 443 for TLS.
    pub async fn start(name: &str, tls: Arc<ServerConfig>) -> Result<AuthServer, Error> {
        Self::at(crate::Net::here()?.address(), name, tls).await
    }

    /// The same at this address.
    pub async fn at(ip: Ipv4Addr, name: &str, tls: Arc<ServerConfig>) -> Result<AuthServer, Error> {
        let asked = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        for (port, tls) in [(80, None), (443, Some(TlsAcceptor::from(tls)))] {
            let listener = TcpListener::bind((ip, port)).await.map_err(Error::Listen)?;
            let (name, asked) = (Arc::<str>::from(name), asked.clone());
            tasks.spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(connection(stream, tls.clone(), name.clone(), asked.clone()));
                }
            });
        }
        Ok(AuthServer { ip, asked, _tasks: tasks })
    }

    /// Its address.
    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// How often it was asked.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, name: Arc<str>, asked: Arc<AtomicU64>) {
    match tls {
        None => calls(stream, name, asked).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                calls(stream, name, asked).await;
            }
        }
    }
}

async fn calls(stream: impl AsyncRead + AsyncWrite + Unpin, name: Arc<str>, asked: Arc<AtomicU64>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        asked.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(call(request, respond, name.clone()));
    }
}

async fn call(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, name: Arc<str>) {
    let Some(check) = message::<CheckRequest>(request.into_body()).await else {
        respond.send_reset(Reason::PROTOCOL_ERROR);
        return;
    };
    let http = check.attributes.as_ref().and_then(|it| it.request.as_ref()?.http.as_ref());
    let wish = http.and_then(|http| http.headers.get("x-auth")).map(String::as_str).unwrap_or_default();
    let answer = match wish {
        "hang" => return std::future::pending().await,
        "reset" => return respond.send_reset(Reason::INTERNAL_ERROR),
        "garbage" => Bytes::from_static(b"\xff\xff\xff\xff"),
        wish if wish.starts_with("deny") => denied(&name, wish).encode_to_vec().into(),
        wish => allowed(&name, check.attributes.as_ref(), wish).encode_to_vec().into(),
    };
    let _gone = send(respond, answer);
}

/// The message of a call, without the five bytes before it.
pub(crate) async fn message<M: Message + Default>(mut body: RecvStream) -> Option<M> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.ok()?;
        body.flow_control().release_capacity(chunk.len()).ok()?;
        bytes.extend_from_slice(&chunk);
    }
    M::decode(bytes.get(5..)?).ok()
}

/// Answers a call with this message.
pub(crate) fn send(mut respond: SendResponse<Bytes>, message: Bytes) -> Result<(), h2::Error> {
    let head = Response::builder().header("content-type", "application/grpc").body(()).unwrap_or_default();
    let mut stream = respond.send_response(head, false)?;
    let mut frame = BytesMut::from(&[0][..]);
    frame.extend_from_slice(&u32::try_from(message.len()).unwrap_or_default().to_be_bytes());
    frame.extend_from_slice(&message);
    stream.send_data(frame.freeze(), false)?;
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
    stream.send_trailers(trailers)
}

fn header(name: &str, value: &str) -> HeaderValueOption {
    HeaderValueOption {
        header: Some(HeaderValue { key: name.to_owned(), value: value.to_owned(), ..Default::default() }),
        append_action: HeaderAppendAction::OverwriteIfExistsOrAdd.into(),
        ..Default::default()
    }
}

/// The header that a wish of this kind asks for.
pub(crate) fn wished<'a>(wish: &'a str, kind: &str) -> Option<(&'a str, &'a str)> {
    wish.strip_prefix(kind)?.strip_prefix(' ')?.split_once('=')
}

fn denied(name: &str, wish: &str) -> CheckResponse {
    let (code, headers, body) = match (wished(wish, "deny"), wish.strip_prefix("deny ").and_then(|it| it.parse().ok()))
    {
        (Some((name, value)), _) => (401, vec![header(name, value)], ""),
        (None, Some(code)) => (code, Vec::new(), "denied"),
        (None, None) => (401, vec![header("x-auth-by", name)], "denied"),
    };
    let denied = DeniedHttpResponse { status: Some(HttpStatus { code }), headers, body: body.to_owned() };
    CheckResponse {
        status: Some(Status { code: PERMISSION_DENIED, ..Default::default() }),
        http_response: Some(HttpResponse::DeniedResponse(denied)),
        ..Default::default()
    }
}

fn allowed(name: &str, attributes: Option<&AttributeContext>, wish: &str) -> CheckResponse {
    let context = attributes.map(|it| &it.context_extensions).into_iter().flatten();
    let context: Vec<String> = context.map(|(key, value)| format!("{key}={value}")).collect();
    let http = attributes.and_then(|it| it.request.as_ref()?.http.as_ref());
    let (text, raw) = http.map_or((0, 0), |http| (http.body.len(), http.raw_body.len()));
    let partial = http.and_then(|http| http.headers.get("x-envoy-auth-partial-body")).map_or("", String::as_str);
    let own = http.map_or(0, |http| http.headers.keys().filter(|name| name.starts_with("x-sesame-")).count());
    let mut headers = vec![
        header("x-auth-by", name),
        header("x-auth-context", &context.join(" ")),
        header("x-auth-body", &(text + raw).to_string()),
        header("x-auth-raw-body", &raw.to_string()),
        header("x-auth-partial", partial),
        header("x-auth-own", &own.to_string()),
    ];
    headers.extend(wished(wish, "set").map(|(name, value)| header(name, value)));
    let append = HeaderAppendAction::AppendIfExistsOrAdd.into();
    let appended = |(name, value)| HeaderValueOption { append_action: append, ..header(name, value) };
    headers.extend(wished(wish, "append").map(appended));
    let ok = OkHttpResponse {
        headers,
        headers_to_remove: wish.strip_prefix("remove ").map(str::to_owned).into_iter().collect(),
        response_headers_to_add: wished(wish, "answer").map(|(name, value)| header(name, value)).into_iter().collect(),
        ..Default::default()
    };
    CheckResponse {
        status: Some(Status { code: OK, ..Default::default() }),
        http_response: Some(HttpResponse::OkResponse(ok)),
        ..Default::default()
    }
}
