//! What the proxies that an object is for have made of it.

use super::cut;
use std::sync::Arc;

/// The longest part of a proxy's error that a status repeats, in bytes. The whole error is in the log.
const LONGEST_ERROR: usize = 512;

/// What is known of the proxies that an object is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyState {
    /// Nothing yet: the object has just changed.
    Pending,
    /// Proxies are connected, and some have not answered.
    Waiting,
    /// No proxy is connected.
    NoProxies {
        /// It has been so for long enough that what an earlier proxy acknowledged no longer counts.
        is_lasting: bool,
    },
    /// Proxies have acknowledged all of the object in its current form.
    Acknowledged {
        /// How many.
        counts: ProxyCounts,
        /// One that rejected what the others accepted.
        refusal: Option<Arc<ProxyRefusal>>,
    },
}

/// How many proxies have acknowledged something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyCounts {
    /// Those that have it.
    pub acknowledged: u64,
    /// All that are connected.
    pub connected: u64,
}

/// A proxy that rejected something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyRefusal {
    /// The id of its node: the name of its pod.
    pub node: Arc<str>,
    /// Its error.
    pub text: Arc<str>,
}

impl ProxyState {
    /// That so many proxies have acknowledged it, and none rejected it.
    pub fn acknowledged(counts: ProxyCounts) -> Self {
        Self::Acknowledged { counts, refusal: None }
    }

    /// A sentence for people.
    pub fn message(&self) -> String {
        match self {
            ProxyState::Pending | ProxyState::Waiting => "Waiting for proxies to acknowledge it.".to_owned(),
            ProxyState::NoProxies { .. } => "No proxy is connected.".to_owned(),
            ProxyState::Acknowledged { counts, refusal: None } => match counts {
                ProxyCounts { acknowledged: 1, connected: 1 } => "Accepted by the connected proxy.".to_owned(),
                ProxyCounts { acknowledged, connected } if acknowledged == connected => {
                    format!("Accepted by all {connected} connected proxies.")
                }
                ProxyCounts { acknowledged, connected } => {
                    format!("Accepted by {acknowledged} of {connected} connected proxies.")
                }
            },
            ProxyState::Acknowledged { counts, refusal: Some(refusal) } => {
                let ProxyCounts { acknowledged, connected } = counts;
                let text = cut(&refusal.text, LONGEST_ERROR);
                format!(
                    "Accepted by {acknowledged} of {connected} connected proxies; {} rejected it: {text}",
                    refusal.node
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledged(acknowledged: u64, connected: u64, refusal: Option<(&str, &str)>) -> String {
        let refusal = refusal.map(|(node, text)| Arc::new(ProxyRefusal { node: node.into(), text: text.into() }));
        ProxyState::Acknowledged { counts: ProxyCounts { acknowledged, connected }, refusal }.message()
    }

    #[test]
    fn proxies_are_counted_and_one_that_refuses_is_named() {
        assert_eq!(acknowledged(3, 3, None), "Accepted by all 3 connected proxies.");
        assert_eq!(acknowledged(1, 1, None), "Accepted by the connected proxy.");
        assert_eq!(acknowledged(3, 4, None), "Accepted by 3 of 4 connected proxies.");
        assert_eq!(
            acknowledged(2, 3, Some(("envoy-7xk", "cannot bind 0.0.0.0:8443"))),
            "Accepted by 2 of 3 connected proxies; envoy-7xk rejected it: cannot bind 0.0.0.0:8443"
        );
    }

    #[test]
    fn an_error_of_any_length_makes_a_message_of_bounded_length() {
        let message = acknowledged(2, 3, Some(("envoy-7xk", &"é".repeat(100_000))));
        assert!(message.len() < 700 && message.ends_with(" more characters)"), "{message}");
    }
}
