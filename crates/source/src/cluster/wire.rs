//! What the API server sends, as far as it can be told without decoding objects: pages of a list, events of a watch
//! (one to a line), and of an object which it is, and which version of it.
//!
//! Everything but three fields of an object is skipped over, so that an object that is known already costs hardly more
//! than the look at its bytes.

use crate::cluster::api::Failure;
use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, error::Error, fmt};
use xxhash_rust::xxh3::xxh3_64;

/// The names and the version of an object.
#[derive(Debug, Deserialize)]
pub struct Head<'a> {
    #[serde(borrow, default)]
    pub metadata: HeadMeta<'a>,
}

/// See [`Head`].
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadMeta<'a> {
    #[serde(borrow, default)]
    pub name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    pub resource_version: Cow<'a, str>,
}

impl<'a> Head<'a> {
    /// The head of an object. That there is none is no fault of the object: the API server makes it.
    pub fn of(object: &'a RawValue) -> Result<Head<'a>, Failure> {
        serde_json::from_str(object.get())
            .map_err(|error| Failure::Other(format!("an object has no metadata: {error}")))
    }

    /// The version as a number. Versions are compared for equality only.
    pub fn version(&self) -> u64 {
        let text = &*self.metadata.resource_version;
        text.parse().unwrap_or_else(|_| xxh3_64(text.as_bytes()))
    }
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub struct Page<'a> {
    #[serde(default)]
    pub metadata: PageMeta,
    #[serde(borrow, default)]
    pub items: Option<Vec<&'a RawValue>>,
}

/// See [`Page`].
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageMeta {
    #[serde(default)]
    pub resource_version: String,
    /// Where the next page begins; empty on the last.
    #[serde(default)]
    pub r#continue: String,
}

/// A line of a watch.
#[derive(Debug, Deserialize)]
pub struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub object: &'a RawValue,
}

impl<'a> Event<'a> {
    /// The event on a line.
    pub fn of(line: &'a [u8]) -> Result<Event<'a>, Failure> {
        serde_json::from_slice(line).map_err(|error| Failure::Other(format!("an event cannot be read: {error}")))
    }
}

/// The beginning of an event: its type, and the names of its object.
#[derive(Debug, Default)]
pub struct Opening<'a> {
    pub kind: Cow<'a, str>,
    pub metadata: HeadMeta<'a>,
}

impl<'a> Opening<'a> {
    /// The beginning of a line; nothing if more comes before it than an API server sends. The rest of the line is not looked at.
    pub fn of(line: &'a [u8]) -> Option<Opening<'a>> {
        let (mut opening, mut is_whole) = (Opening::default(), false);
        let mut json = serde_json::Deserializer::from_slice(line);
        // Once all is found this ends with an error: a map cannot be left half read in another way.
        let _ = json.deserialize_map(EventMap { opening: &mut opening, is_whole: &mut is_whole });
        is_whole.then_some(opening)
    }
}

/// Reads the map of an event up to the metadata of its object.
struct EventMap<'o, 'a> {
    opening: &'o mut Opening<'a>,
    is_whole: &'o mut bool,
}

impl<'a> Visitor<'a> for EventMap<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        let EventMap { opening, is_whole } = self;
        while let Some(key) = map.next_key::<Cow<'a, str>>()? {
            match &*key {
                "type" => opening.kind = map.next_value()?,
                "object" => return map.next_value_seed(EventMap { opening, is_whole }),
                "metadata" => {
                    opening.metadata = map.next_value()?;
                    *is_whole = !opening.kind.is_empty();
                    return Err(de::Error::custom("the rest is not looked at"));
                }
                "kind" | "apiVersion" => _ = map.next_value::<IgnoredAny>()?,
                _ => return Err(de::Error::custom("something else comes first")),
            }
        }
        Ok(())
    }
}

impl<'a> DeserializeSeed<'a> for EventMap<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, object: D) -> Result<(), D::Error> {
        object.deserialize_map(self)
    }
}

/// What the API server says when it cannot do something.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub code: u16,
}

/// The kinds of a group.
#[derive(Debug, Deserialize)]
pub struct Kinds<'a> {
    #[serde(borrow, default)]
    pub resources: Vec<KindName<'a>>,
}

/// See [`Kinds`].
#[derive(Debug, Deserialize)]
pub struct KindName<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
}

/// The groups of an API server, each with its versions.
#[derive(Debug, Deserialize)]
pub struct Groups<'a> {
    #[serde(borrow, default)]
    pub groups: Vec<Group<'a>>,
}

/// See [`Groups`].
#[derive(Debug, Deserialize)]
pub struct Group<'a> {
    #[serde(borrow, default)]
    pub versions: Vec<GroupVersion<'a>>,
}

/// See [`Groups`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupVersion<'a> {
    #[serde(borrow)]
    pub group_version: Cow<'a, str>,
}

/// Longer than any object: etcd takes a few megabytes at most.
const LONGEST: usize = 64 << 20;

/// The lines of a body.
pub struct Lines<B = kube::client::Body> {
    body: B,
    buffer: BytesMut,
    /// Up to here the buffer is known to hold no end of line.
    searched: usize,
}

impl<B: Body<Data = Bytes, Error: Error> + Unpin> Lines<B> {
    pub fn new(body: B) -> Self {
        Self { body, buffer: BytesMut::new(), searched: 0 }
    }

    /// The whole lines that arrived since, at least one; none at the end. Half a line at the end is dropped: the
    /// connection was cut.
    pub async fn next(&mut self) -> Result<Option<Vec<Bytes>>, String> {
        loop {
            let mut lines = Vec::new();
            while let Some(at) = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n') {
                let line = self.buffer.split_to(self.searched + at + 1).freeze();
                self.searched = 0;
                lines.push(line.slice(..line.len() - 1));
            }
            self.searched = self.buffer.len();
            if self.buffer.is_empty() {
                // Lines that were handed out share the room of the buffer: begin a new one rather than keep them alive.
                self.buffer = BytesMut::new();
            }
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
            if self.buffer.len() > LONGEST {
                return Err(format!("an event of more than {LONGEST} bytes"));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(crate::cluster::api::with_causes(&error)),
                None => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use futures::stream;
    use http_body_util::StreamBody;

    async fn lines(chunks: &'static [&'static str]) -> Vec<String> {
        let frames = chunks.iter().map(|chunk| Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from(*chunk))));
        let mut lines = Lines::new(StreamBody::new(stream::iter(frames)));
        let mut found = Vec::new();
        while let Some(some) = lines.next().await.unwrap() {
            found.extend(some.iter().map(|line| String::from_utf8(line.to_vec()).unwrap()));
        }
        found
    }

    #[test]
    fn an_event_is_known_by_its_beginning() {
        let opening = |line: &'static str| {
            let Opening { kind, metadata } = Opening::of(line.as_bytes())?;
            Some((kind, metadata.namespace, metadata.name, metadata.resource_version))
        };
        let found = opening(
            r#"{"type":"ADDED","object":{"kind":"K","apiVersion":"v1","metadata":{"name":"a","namespace":"n","labels":{"x":"y"},"resourceVersion":"7"},"spec":{"#,
        );
        assert_eq!(found, Some(("ADDED".into(), "n".into(), "a".into(), "7".into())));
        for unknown in [
            "",
            "[]",
            r#"{"type":"ADDED","object":{"spec":{},"metadata":{"name":"a"}}}"#,
            r#"{"object":{"metadata":{"name":"a"}},"type":"ADDED"}"#,
            r#"{"type":"ADDED","object":{"metadata":{"name":"#,
        ] {
            assert_eq!(opening(unknown), None, "{unknown}");
        }
    }

    #[tokio::test]
    async fn lines_may_be_cut_anywhere_and_half_a_line_is_none() {
        assert_eq!(lines(&["a", "b\nc", "\n", "\n", "de\nf\ng", "h\nhalf"]).await, ["ab", "c", "", "de", "f", "gh"]);
        assert!(lines(&[]).await.is_empty());
    }
}
