//! The conformance suite of Gateway API, its source untouched, against Sesame on a real Kubernetes node.
//!
//! In: a built `sesame`, and what to run. Out: how each test of the suite ended, the suite's own report, and a verdict.
//!
//! [`Installation`] is the node with the CRDs, the manifests in `deploy`, our image and the suite's backends, so each Gateway of
//! the suite gets Envoy pods of its own. [`Suite`] runs the upstream program there. [`Results`] reads what it prints,
//! [`Report`] what it writes; all of exit code, lines and report must agree that nothing failed.

mod installation;
mod report;
mod results;
mod suite;

pub use installation::{Installation, Packing};
pub use report::Report;
pub use results::{Outcome, Results};
pub use suite::{Run, Suite};
