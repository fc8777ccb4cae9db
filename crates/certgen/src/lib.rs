//! The certificates of the xDS connection: a CA of our own, one certificate for the server, one for its Envoys.
//!
//! In: a namespace, a lifetime, perhaps a fleet. Out: [`Certificates`], written as Secrets into a cluster ([`cluster`]), as
//! YAML ([`yaml`]) or as PEM files ([`files`]). The CA's key is forgotten once both are signed: whoever needs new
//! certificates makes a new set. Nothing in Sesame depends on where a set came from; cert-manager's, or one made for Contour,
//! works if its names fit.
//!
//! A controller that issues its own certificates keeps the CA's key in a Secret and renews everything in time: [`rotation`]
//! decides which Secret is written next, and [`store`] reads and writes them.

pub mod cluster;
pub mod files;
pub mod issue;
pub mod rotation;
pub mod secret;
pub mod store;

pub use issue::{Authority, Certificates, IssueError, Pair, Request};
pub use secret::{Format, secrets, yaml};
