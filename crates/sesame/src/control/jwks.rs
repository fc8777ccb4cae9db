//! JSON Web Key Sets on reference: asked for when something refers to them, given up when nothing does.
//!
//! Nobody waits for an answer: until there is one, no token that needs it is good. The one exception is the first build, which would
//! take the keys from proxies that another replica, or this one before it was restarted, has given them; but no server
//! can put it off for longer than [`FIRST_BUILD`].

use crate::jwks::{Fetcher, JwksUpdate, Limits, Metrics};
use model::jwt::RemoteJwks;
use pipeline::Pipeline;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until};

/// How long the first build waits for servers at most.
const FIRST_BUILD: Duration = Duration::from_secs(5);

/// The servers that are referred to, and the way to have them asked.
pub struct Jwks {
    fetcher: Fetcher,
    news: UnboundedReceiver<JwksUpdate>,
    referred: HashSet<Arc<RemoteJwks>>,
    /// Of those, the ones that the first build waits for.
    unanswered: HashSet<Arc<RemoteJwks>>,
    /// Until when it does.
    deadline: Option<Instant>,
}

impl Jwks {
    /// Asks within these limits, and counts it.
    pub fn new(limits: Limits, metrics: Metrics) -> Self {
        let (fetcher, news) = Fetcher::new(limits, metrics);
        let (referred, unanswered) = Default::default();
        Self { fetcher, news, referred, unanswered, deadline: None }
    }

    /// What is known of servers by now, all of it together; nothing when the first build has waited long enough.
    pub(super) async fn next(&mut self) -> Vec<JwksUpdate> {
        let until = self.deadline.filter(|_| !self.unanswered.is_empty());
        let first = async {
            match self.news.recv().await {
                Some(news) => news,
                // The fetcher holds the other end.
                None => std::future::pending().await,
            }
        };
        let late = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let first = tokio::select! {
            biased;
            first = first => first,
            () = late => {
                self.unanswered.clear();
                return Vec::new();
            }
        };
        let mut all = vec![first];
        while let Ok(news) = self.news.try_recv() {
            all.push(news);
        }
        all
    }

    /// Hands over what is known.
    pub(super) fn take(&mut self, news: Vec<JwksUpdate>, pipeline: &mut Pipeline) {
        for (source, state) in news {
            self.unanswered.remove(&source);
            // An answer to a question that is no longer asked is not for the pipeline.
            if self.referred.contains(&source) {
                pipeline.set_jwks(&source, Some(state));
            }
        }
    }

    /// Asks for what the pipeline newly refers to, and takes from it what it does not refer to any more; says whether nothing was
    /// taken.
    pub(super) fn ask(&mut self, pipeline: &mut Pipeline) -> bool {
        let mut is_settled = true;
        for (source, spec) in pipeline.jwks_refs() {
            match spec {
                Some(spec) => {
                    if self.referred.insert(source.clone()) {
                        let now = Instant::now();
                        if *self.deadline.get_or_insert(now + FIRST_BUILD) > now {
                            self.unanswered.insert(source.clone());
                        }
                    }
                    self.fetcher.want(source, spec);
                }
                None => {
                    self.referred.remove(&source);
                    self.unanswered.remove(&source);
                    self.fetcher.forget(&source);
                    pipeline.set_jwks(&source, None);
                    is_settled = false;
                }
            }
        }
        is_settled
    }

    /// What the first build waits for.
    pub(super) fn awaited(&self) -> impl Iterator<Item = String> {
        self.unanswered.iter().map(|source| format!("the JWKS of {}", source.uri.authority()))
    }

    /// Whether everything is known that the first build waits for.
    pub(super) fn is_ready(&self) -> bool {
        self.unanswered.is_empty() || self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }
}
