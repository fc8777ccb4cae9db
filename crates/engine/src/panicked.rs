//! A row that keeps its last good value, and why: its computation panicked, or depends on what is not known yet.
//!
//! A kept value depends on history, not on inputs alone, so it would break the law that a build from nothing gives the
//! same tables. It is therefore kept apart and treated as one more input: [`Engine::fresh`](crate::Engine::fresh) hands
//! the last good values over, and a computation that panics or is pending there too finds them.

use std::any::Any;
use std::sync::Arc;

/// Why a row keeps its last good value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its computation panicked and said this.
    Panic(String),
    /// Its computation depends on something that is not known yet.
    Pending,
}

/// A row that keeps its last good value.
pub(crate) struct StaleRow<V> {
    pub(crate) cause: Cause,
    /// The last value that a computation gave, if there was one.
    pub(crate) good: Option<Arc<V>>,
}

/// A row whose last computation panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PanickedRow {
    /// The table's name.
    pub table: &'static str,
    /// The row's key, as `Debug` prints it.
    pub key: String,
    /// What the panic said.
    pub message: String,
    /// The row keeps its last good value; otherwise it is what `on_panic` made of it.
    pub last_good: bool,
}

impl<V> StaleRow<V> {
    /// What the panic said, if that is the cause.
    pub(crate) fn message(&self) -> Option<&str> {
        match &self.cause {
            Cause::Panic(message) => Some(message),
            Cause::Pending => None,
        }
    }
}

/// What a panic said.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "panic without a message".to_owned(),
    }
}
