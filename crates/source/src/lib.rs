//! Where objects come from.
//!
//! In: a Kubernetes API server ([`cluster`]), or a folder of YAML ([`folder`]), watched. Out: batches of [`Change`]s and [`Problem`]s through a [`Feed`], and the
//! word that all is known (*synced*). What the objects mean is nobody's business here.
//!
//! Every source speaks through the same [`Feeder`], so the rest of Sesame cannot tell a file from a cluster. What only
//! files have, a line and a column, is asked for when somebody needs it ([`ObjectLocation`]): keeping it for every field of every
//! object would cost more than the objects.

pub mod change;
pub mod cluster;
pub mod feed;
pub mod fetch;
pub mod folder;
pub mod location;
pub mod outage;
pub mod snippet;

pub use ::yaml;
pub use change::{Batch, Change, ChangeSource, Problem, Subject};
pub use cluster::Cluster;
pub use feed::{Closed, Feed, Feeder, Update, feed};
pub use folder::Folder;
pub use location::{FieldPart, ObjectLocation, ObjectLocations, SourceLocation};
