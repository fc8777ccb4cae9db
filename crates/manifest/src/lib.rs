//! Kubernetes manifests as trees: one source for plain YAML and for the templates of a Helm chart.
//!
//! In: [`Document`]s whose [`Node`]s are literals or refer to settings by path, with conditions and comments. Out:
//! [`yaml`], with the settings filled in, or [`template`], which leaves them to Helm. Both are written by the same walk over
//! the same tree, so an object cannot be in one and not in the other; a test renders the chart with the real `helm` and
//! compares.

mod scalar;
mod tree;
mod write;

pub use scalar::{scalar, value};
pub use tree::{Document, Each, Field, Item, Node, Piece, When, block, field, list, literal, map, setting, text};
pub use write::{Defaults, Values, template, yaml};
