//! A session driven by hand: no sockets, no clock.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Answer, InitialVersions, Options, Request, ResendMarkers, Response, Session, Step, Style, Subscription};
use crate::kind::Kind;
use crate::limits::Limits;
use crate::publish::{Changes, Writer};
use crate::resolve::Resolver;
use crate::resource::{Name, Resource};

mod alias;
mod conformance;
mod envoy;
mod order;
mod pages;
mod property;
mod rejections;

/// One client's stream and the tables behind it.
struct Bench {
    writer: Writer,
    session: Session,
    style: Style,
    now: Instant,
    resolver: Option<Arc<dyn Resolver>>,
    limits: Limits,
    /// How many streams there were.
    streams: u64,
}

impl Bench {
    fn new(style: Style) -> Self {
        Self::with(style, Limits::default(), None)
    }

    fn with(style: Style, limits: Limits, resolver: Option<Arc<dyn Resolver>>) -> Self {
        let (mut writer, now) = (Writer::default(), Instant::now());
        let view = writer.apply(Changes::default());
        let session = Session::new(options(style, &limits, resolver.clone()), view, now);
        Self { writer, session, style, now, resolver, limits, streams: 0 }
    }

    /// The client is back on a new stream, of this replica or another: the tables are the same.
    fn reconnect(&mut self) {
        let view = self.writer.apply(Changes::default());
        self.streams += 1;
        let markers = ResendMarkers { returning: self.streams << 32, stream: self.streams };
        let options = Options { markers, ..options(self.style, &self.limits, self.resolver.clone()) };
        self.session = Session::new(options, view, self.now);
    }

    fn publish(&mut self, upserts: Vec<Resource>, removes: &[(Kind, &str)]) {
        let removes = removes.iter().map(|(kind, name)| (*kind, Name::from(*name))).collect();
        let next = self.writer.apply(Changes { upserts, removes });
        self.session.on_publish(next, self.now);
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    fn request(&mut self, request: Request) -> Answer {
        self.session.on_request(request, self.now).expect("within the limits")
    }

    fn subscribe(&mut self, kind: Kind, names: &[&str]) -> Answer {
        let names = names.iter().map(|name| Name::from(*name)).collect();
        let subscription = match self.style {
            Style::Delta => Subscription::Delta {
                subscribe: names,
                unsubscribe: vec![],
                initial_versions: InitialVersions::default(),
            },
            Style::Sotw => Subscription::Sotw { names, version: None },
        };
        self.request(Request { kind, nonce: None, error: None, subscription })
    }

    /// Subscribes to everything on a new stream, with what the client has.
    fn resume(&mut self, kind: Kind, names: &[&str], held: &[(&str, u64)]) -> Answer {
        let subscribe = names.iter().map(|name| Name::from(*name)).collect();
        let held = held.iter().map(|(name, version)| (Name::from(*name), *version)).collect();
        let subscription = Subscription::Delta { subscribe, unsubscribe: vec![], initial_versions: held };
        self.request(Request { kind, nonce: None, error: None, subscription })
    }

    fn answer(&mut self, response: &Response, error: Option<&str>) -> Answer {
        let subscription = match self.style {
            Style::Delta => Subscription::Delta {
                subscribe: vec![],
                unsubscribe: vec![],
                initial_versions: InitialVersions::default(),
            },
            // As a client answers that asked for every name.
            Style::Sotw => Subscription::Sotw { names: vec![], version: None },
        };
        self.request(Request {
            kind: response.kind,
            nonce: Some(response.nonce),
            error: error.map(str::to_owned),
            subscription,
        })
    }

    fn ack(&mut self, response: &Response) -> Answer {
        self.answer(response, None)
    }

    /// All that is sent now.
    fn responses(&mut self) -> Vec<Response> {
        let mut responses = Vec::new();
        while let Step::Send(response) = self.session.poll(self.now) {
            responses.push(response);
            assert!(responses.len() < 10_000, "the session never comes to rest");
        }
        responses
    }

    /// The one response that is sent now.
    fn response(&mut self) -> Response {
        let mut responses = self.responses();
        assert_eq!(responses.len(), 1, "one response: {responses:?}");
        responses.remove(0)
    }

    /// Everything that is sent now is taken, until there is silence; what was sent, in order.
    fn settle(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        loop {
            let responses = self.responses();
            if responses.is_empty() {
                return sent;
            }
            for response in responses {
                sent.push(summary(&response));
                self.ack(&response);
            }
        }
    }
}

fn options(style: Style, limits: &Limits, resolver: Option<Arc<dyn Resolver>>) -> Options {
    let (limits, markers) = (Arc::new(limits.clone()), ResendMarkers::default());
    Options { style, only: None, limits, resolver, rejected: HashSet::new(), markers }
}

/// A response in a line: `cds a b -c`.
fn summary(response: &Response) -> String {
    let mut line = response.kind.to_string();
    response.upserts.iter().for_each(|entry| line += &format!(" {}", entry.name));
    response.removed.iter().for_each(|name| line += &format!(" -{name}"));
    line
}

fn summaries(responses: &[Response]) -> Vec<String> {
    responses.iter().map(summary).collect()
}

fn resource(kind: Kind, name: &str, body: &str) -> Resource {
    Resource::new(kind, name, body.as_bytes().to_vec())
}

/// A cluster with an endpoint set of the same name.
fn cluster(name: &str, body: &str) -> Resource {
    resource(Kind::Cluster, name, body).refers_to(Kind::Endpoints, name)
}

fn endpoints(name: &str, body: &str) -> Resource {
    resource(Kind::Endpoints, name, body)
}

fn route(name: &str, body: &str, clusters: &[&str]) -> Resource {
    clusters.iter().fold(resource(Kind::Route, name, body), |route, cluster| route.refers_to(Kind::Cluster, *cluster))
}
