//! An API server that answers as a test tells it to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::mirror::TIMEOUT;

/// What is answered.
pub enum Answer {
    /// This, in one piece.
    Text(u16, String),
    /// A watch with these lines, which ends with the sender.
    Watch(mpsc::UnboundedReceiver<String>),
    /// Later: a busy server that says in how many seconds.
    Busy(u64),
    /// Nothing, for ever.
    Nothing,
    /// The connection is cut.
    Cut,
}

type Script = dyn Fn(&str) -> Answer + Send + Sync;

/// Watches that stay open, with a way to speak in the last one.
#[derive(Clone, Default)]
pub struct Watches(Arc<Mutex<Vec<mpsc::UnboundedSender<String>>>>);

impl Watches {
    /// One more.
    pub fn open(&self) -> Answer {
        let (sender, answer) = watch();
        self.0.lock().push(sender);
        answer
    }

    /// Says something in the last one.
    pub fn say(&self, line: String) {
        self.0.lock().last().unwrap().send(line).unwrap();
    }

    /// Waits until so many are open.
    pub async fn opened(&self, count: usize) {
        let look = async || (self.count() >= count).then_some(()).ok_or("not yet");
        testbed::eventually("a watch", TIMEOUT, look).await.unwrap();
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.0.lock().len()
    }

    /// Says something in each of them.
    pub fn say_in_all(&self, line: &str) {
        self.0.lock().iter().for_each(|watch| watch.send(line.to_owned()).unwrap());
    }

    /// Ends all of them.
    pub fn end(&self) {
        self.0.lock().clear();
    }
}

/// A server with a script.
pub struct Fake {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    down: Arc<AtomicBool>,
}

impl Fake {
    /// Starts one. The script is given the path and the query of each question.
    pub async fn start(script: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Fake {
        let script: Arc<Script> = Arc::new(script);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let down: Arc<AtomicBool> = Arc::default();
        let fake = Fake { address, asked: asked.clone(), down: down.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, asked, down) = (script.clone(), asked.clone(), down.clone());
                let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                    let url = request.uri().path_and_query().unwrap().to_string();
                    asked.lock().push(url.clone());
                    let answer = if down.load(Ordering::SeqCst) { Answer::Cut } else { script(&url) };
                    async move {
                        if matches!(answer, Answer::Nothing) {
                            std::future::pending::<()>().await;
                        }
                        respond(answer).ok_or_else(|| std::io::Error::other("cut"))
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        fake
    }

    /// A client of it.
    pub fn client(&self) -> kube::Client {
        let mut config = kube::Config::new(format!("http://{}", self.address).parse().unwrap());
        config.default_retry = false;
        config.try_into().unwrap()
    }

    /// Cuts every connection at its next question, until told otherwise.
    pub fn down(&self, is_down: bool) {
        self.down.store(is_down, Ordering::SeqCst);
    }

    /// The questions so far that contain a text.
    pub fn asked(&self, text: &str) -> Vec<String> {
        self.asked.lock().iter().filter(|url| url.contains(text)).cloned().collect()
    }
}

fn respond(answer: Answer) -> Option<Response<BoxBody<Bytes, Infallible>>> {
    let mut response = Response::builder();
    let (code, body) = match answer {
        Answer::Busy(seconds) => {
            response = response.header("retry-after", seconds);
            (429, Full::new(Bytes::new()).boxed())
        }
        Answer::Text(code, text) => (code, Full::new(Bytes::from(text)).boxed()),
        Answer::Watch(lines) => {
            let lines = futures::stream::unfold(lines, async |mut lines| Some((lines.recv().await?, lines)));
            let frames = lines.map(|line| Ok(Frame::data(Bytes::from(line + "\n"))));
            (200, BodyExt::boxed(StreamBody::new(frames)))
        }
        Answer::Cut | Answer::Nothing => return None,
    };
    Some(response.status(code).body(body).unwrap())
}

/// A Service of a version.
pub fn service(name: &str, version: u64) -> String {
    format!(r#"{{"metadata": {{"name": "{name}", "namespace": "n", "resourceVersion": "{version}"}}, "spec": {{}}}}"#)
}

/// A page of a list.
pub fn page(version: u64, next: &str, items: &[String]) -> Answer {
    let meta = format!(r#"{{"resourceVersion": "{version}", "continue": "{next}"}}"#);
    Answer::Text(200, format!(r#"{{"metadata": {meta}, "items": [{}]}}"#, items.join(",")))
}

/// A line of a watch.
pub fn event(kind: &str, object: &str) -> String {
    format!(r#"{{"type": "{kind}", "object": {object}}}"#)
}

/// A refusal.
pub fn status(code: u16, message: &str) -> Answer {
    Answer::Text(code, format!(r#"{{"kind": "Status", "code": {code}, "message": "{message}"}}"#))
}

/// A watch that is silent, and the way to say something in it.
pub fn watch() -> (mpsc::UnboundedSender<String>, Answer) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Answer::Watch(receiver))
}
