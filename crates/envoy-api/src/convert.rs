//! Rust values as the well-known messages that Envoy wraps optional scalars in.

use std::time::Duration;

use crate::google::protobuf;

impl From<Duration> for protobuf::Duration {
    /// Saturates at the largest duration that protobuf can say (about 292 billion years).
    fn from(duration: Duration) -> Self {
        let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        let nanos = i32::try_from(duration.subsec_nanos()).unwrap_or(i32::MAX);
        Self { seconds, nanos }
    }
}

impl From<bool> for protobuf::BoolValue {
    fn from(value: bool) -> Self {
        Self { value }
    }
}

impl From<u32> for protobuf::UInt32Value {
    fn from(value: u32) -> Self {
        Self { value }
    }
}

impl From<u64> for protobuf::UInt64Value {
    fn from(value: u64) -> Self {
        Self { value }
    }
}

impl From<f64> for protobuf::DoubleValue {
    fn from(value: f64) -> Self {
        Self { value }
    }
}

impl From<&str> for protobuf::Value {
    fn from(value: &str) -> Self {
        Self { kind: Some(protobuf::value::Kind::StringValue(value.to_owned())) }
    }
}

/// A whole number of seconds as protobuf says it.
pub fn seconds(seconds: u32) -> protobuf::Duration {
    Duration::from_secs(seconds.into()).into()
}
