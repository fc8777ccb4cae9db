//! Conditions of Gateway API: their types, and those that are worded alike everywhere.

use model::{
    Code,
    status::{Condition, ProxyState, Scope, Truth},
};
use std::fmt::Display;

/// Whether the object is valid and taken into account.
pub const ACCEPTED: &str = "Accepted";
/// Whether proxies have it.
pub const PROGRAMMED: &str = "Programmed";
/// Whether everything that it refers to is there and may be used.
pub const RESOLVED_REFS: &str = "ResolvedRefs";
/// Whether the CRDs are of a release that is supported.
pub const SUPPORTED_VERSION: &str = "SupportedVersion";
/// Whether another listener is in the way of a listener.
pub const CONFLICTED: &str = "Conflicted";
/// Whether TLS listeners of one port have names in common; never False.
pub const OVERLAPPING_TLS: &str = "OverlappingTLSConfig";
/// Whether clients are accepted without a valid certificate; never False.
pub const INSECURE_FRONTEND: &str = "InsecureFrontendValidationMode";

/// A condition.
pub fn new(kind: &'static str, status: Truth, reason: &'static str, message: impl Into<String>) -> Condition {
    Condition::new(kind, status, reason, message)
}

/// That something does not hold, with the code by which whoever reads it finds what to do.
pub fn refused(kind: &'static str, reason: &'static str, code: Code, why: impl Display) -> Condition {
    new(kind, Truth::False, reason, coded(code, why))
}

/// A text with its code in front, as events have it.
pub fn coded(code: Code, why: impl Display) -> String {
    format!("{code}: {why}")
}

/// That it is accepted.
pub fn accepted(message: impl Into<String>) -> Condition {
    new(ACCEPTED, Truth::True, "Accepted", message)
}

/// That all references are resolved.
pub fn resolved() -> Condition {
    new(RESOLVED_REFS, Truth::True, "ResolvedRefs", "All references are resolved.")
}

/// That proxies have acknowledged it. One that refuses it is told as long as it does: the reason is another, too.
pub fn programmed(proxies: &ProxyState, is_refused: bool) -> Condition {
    let reason = if is_refused { "PartiallyProgrammed" } else { "Programmed" };
    Condition { message_matters: is_refused, ..new(PROGRAMMED, Truth::True, reason, proxies.message()) }
}

/// Whether a condition is stated and holds.
pub fn is_true(scope: &Scope, kind: &str) -> bool {
    scope.conditions.iter().any(|condition| condition.kind == kind && condition.status == Truth::True)
}

/// States a condition in place of the one of its type, if there is one.
pub fn replace(scope: &mut Scope, condition: Condition) {
    match scope.conditions.iter_mut().find(|stated| stated.kind == condition.kind) {
        Some(stated) => *stated = condition,
        None => scope.conditions.push(condition),
    }
}
