//! How requests are traced: which of them, and what their spans say. The defaults are Contour's.

use crate::{HeaderName, cluster::Extension, route::PathAndQuery};
use std::{fmt, sync::Arc};

/// A percentage, in hundredths of a percent: the smallest step that proxies know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u16);

/// Why a text is not a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a number from 0 to 100")]
pub struct NotAPercentage(Box<str>);

impl Percent {
    /// All of them.
    pub const ALL: Self = Self(10_000);

    /// Reads a number from 0 to 100, to the nearest hundredth.
    pub fn parse(text: &str) -> Result<Self, NotAPercentage> {
        let number = text.parse().ok().filter(|number: &f64| (0.0..=100.0).contains(number));
        // The range is checked, so it fits.
        number.map(|number| Self((number * 100.0).round() as u16)).ok_or_else(|| NotAPercentage(text.into()))
    }

    /// The same without what is behind the point.
    #[must_use]
    pub fn whole(self) -> Self {
        Self(self.0 / 100 * 100)
    }

    /// In percent.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

/// Where the value of a tag comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TagValue {
    /// It is always this; not empty.
    Literal(Arc<str>),
    /// A request header.
    RequestHeader(HeaderName),
    /// A variable in the environment of the proxy.
    Environment(Arc<str>),
}

/// A tag of spans.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpanTag {
    /// Its name; not empty.
    pub name: Arc<str>,
    /// Its value.
    pub value: TagValue,
    /// The value where the header or the variable is not there; without one there is no tag then.
    pub default: Option<Arc<str>>,
}

impl SpanTag {
    /// A tag without a value of its own for what is not there.
    pub fn new(name: impl Into<Arc<str>>, value: TagValue) -> Self {
        Self { name: name.into(), value, default: None }
    }
}

/// Which requests are traced, and what their spans say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tracing {
    /// `service.name` of the spans.
    pub service_name: Arc<str>,
    /// The most that are traced, whoever wants it. Proxies take whole percentages.
    pub overall: Percent,
    /// How many of those are traced whose clients ask for it. Proxies take whole percentages.
    pub client: Percent,
    /// How many of all others are traced.
    pub random: Percent,
    /// The longest path in a span, in bytes.
    pub max_path: u32,
    /// More tags, each of another name.
    pub tags: Vec<SpanTag>,
}

impl Default for Tracing {
    fn default() -> Self {
        Self {
            service_name: "contour".into(),
            overall: Percent::ALL,
            client: Percent::ALL,
            random: Percent::ALL,
            max_path: 256,
            tags: Vec::new(),
        }
    }
}

/// Tracing, and the collector that spans are sent to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tracer {
    /// What is traced.
    pub tracing: Arc<Tracing>,
    /// Who gets the spans. One that does not exist gets none, and requests are served all the same.
    pub collector: Extension,
    /// In which form it gets them.
    pub exporter: Exporter,
}

/// In which form a collector gets spans.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Exporter {
    /// OTLP over gRPC.
    Otlp,
    /// Zipkin's API over HTTP.
    Zipkin(Zipkin),
    /// The API of Datadog's agent over HTTP; `Host` of requests is this.
    Datadog(Arc<str>),
}

impl Exporter {
    /// Whether proxies refuse a listener that names a collector whose cluster they do not have.
    pub fn needs_cluster(&self) -> bool {
        match self {
            Exporter::Otlp => false,
            Exporter::Zipkin(_) | Exporter::Datadog(_) => true,
        }
    }
}

/// How spans are sent to Zipkin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Zipkin {
    /// The path of its API.
    pub endpoint: PathAndQuery,
    /// `Host` of requests to it.
    pub host: Arc<str>,
    /// Whether spans are sent as protobuf; otherwise as JSON.
    pub is_protobuf: bool,
    /// Whether new traces have ids of 128 bits; otherwise of 64.
    pub has_long_ids: bool,
    /// Whether the client's span and the proxy's are one.
    pub shares_spans: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_a_number_from_0_to_100_in_steps_of_a_hundredth() {
        for (text, value, whole) in [
            ("0", 0.0, 0.0),
            ("100", 100.0, 100.0),
            ("0.5", 0.5, 0.0),
            ("33.337", 33.34, 33.0),
            ("1e1", 10.0, 10.0),
            ("29.99", 29.99, 29.0),
            ("-0", 0.0, 0.0),
        ] {
            let percent = Percent::parse(text).expect(text);
            assert_eq!((percent.value(), percent.whole().value()), (value, whole), "{text}");
        }
        for wrong in ["", "-1", "100.01", "NaN", "inf", "1e999", "50%", "half", " 5"] {
            assert!(Percent::parse(wrong).is_err(), "{wrong}");
        }
    }
}
