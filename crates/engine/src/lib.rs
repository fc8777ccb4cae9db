//! Keyed tables with tracked reads: recomputes only what a change of an input can reach.
//!
//! In: changes of input tables. Out: changes of output tables. Between them stand derived tables, each a pure function
//! from a key to a value that reads earlier tables through [`Reads`] alone. The engine records every read: exact
//! rows, misses, index probes, and parts of rows. A changed row wakes its readers, an equal value stops there, and so the cost of an edit
//! is the number of rows that depend on it, not the number of rows there are.
//!
//! ```
//! use engine::{Derived, Index, Input, Pipeline, Reads, Table};
//!
//! // An input table: who set up what. (Objects of any kind, keyed by their name.)
//! struct Apps;
//! #[derive(PartialEq)]
//! struct App { hosts: Vec<&'static str>, service: &'static str }
//! impl Table for Apps {
//!     type Key = &'static str;
//!     type Value = App;
//!     const NAME: &'static str = "apps";
//! }
//! impl Input for Apps {}
//!
//! // Another one: the port of a service.
//! struct Services;
//! impl Table for Services {
//!     type Key = &'static str;
//!     type Value = u16;
//!     const NAME: &'static str = "services";
//! }
//! impl Input for Services {}
//!
//! // A derived table: a translation for each app, with its backend looked up. A missing service is recorded as a miss:
//! // when it appears, this row is computed again.
//! struct Translations;
//! #[derive(PartialEq)]
//! struct Translation { hosts: Vec<&'static str>, backend: Option<String> }
//! impl Table for Translations {
//!     type Key = &'static str;
//!     type Value = Translation;
//!     const NAME: &'static str = "translations";
//! }
//! impl Derived for Translations {
//!     fn compute(&self, name: &Self::Key, reads: &mut Reads<'_>) -> Option<Translation> {
//!         let app = reads.get::<Apps>(name)?;
//!         let port = reads.get::<Services>(&app.service);
//!         Some(Translation { hosts: app.hosts.clone(), backend: port.map(|port| format!("{}:{port}", app.service)) })
//!     }
//! }
//!
//! // Translations contribute to hosts: an index from the host to the translations that name it.
//! struct TranslationsByHost;
//! impl Index for TranslationsByHost {
//!     type Of = Translations;
//!     type Key = &'static str;
//!     const NAME: &'static str = "by host";
//!     fn keys(_: &&'static str, translation: &Translation) -> impl IntoIterator<Item = &'static str> {
//!         translation.hosts.clone()
//!     }
//! }
//!
//! // One row for each host that at least one translation names; the first translation wins.
//! struct Hosts;
//! impl Table for Hosts {
//!     type Key = &'static str;
//!     type Value = String;
//!     const NAME: &'static str = "hosts";
//! }
//! impl Derived for Hosts {
//!     fn compute(&self, host: &Self::Key, reads: &mut Reads<'_>) -> Option<String> {
//!         let first = reads.probe::<TranslationsByHost>(host).next()?;
//!         let translation = reads.get::<Translations>(first)?;
//!         Some(translation.backend.clone().unwrap_or_else(|| "503".into()))
//!     }
//! }
//!
//! let mut pipeline = Pipeline::new();
//! pipeline.input::<Apps>();
//! pipeline.input::<Services>();
//! pipeline.derived(Translations).each::<Apps>();
//! pipeline.derived(Hosts).per::<TranslationsByHost>().output();
//! let mut engine = pipeline.build();
//!
//! engine.set::<Apps>(&"shop", App { hosts: vec!["a.example", "b.example"], service: "web" });
//! engine.settle();
//! assert_eq!(**engine.get::<Hosts>(&"a.example").unwrap(), "503");
//!
//! engine.set::<Services>(&"web", 80u16);
//! engine.settle();
//! let changes = engine.changes::<Hosts>();
//! assert_eq!(changes.set.len(), 2);
//! assert_eq!(*changes.set[0].1, "web:80");
//!
//! engine.remove::<Apps>(&"shop");
//! engine.settle();
//! assert_eq!(engine.changes::<Hosts>().gone, ["a.example", "b.example"]);
//! assert_eq!(engine.self_check(), Ok(()));
//! ```
//!
//! # Why our own
//!
//! - *Rebuild all, send the difference* is what Contour does. It is the oracle here ([`Engine::self_check`]), and too slow
//!   as the way: an edit would cost what ten thousand objects cost.
//! - *Salsa* asks downwards: each round walks from the outputs to see what may have changed, inputs are never freed, and
//!   "who points at me" needs hand-kept indexes anyway. Here changes push upwards from the inputs.
//! - *Differential dataflow* joins incrementally, but ties, precedence and conflicts would have to be written as dataflow.
//!   Here they are plain functions that can be tested by themselves.
//!
//! # The task that owns it
//!
//! One task owns the [`Engine`]: it sets inputs, lets it [run](Engine::run) in slices, takes [`Changes`]. There are no
//! threads or timers inside. Computations are pure and `Sync`; those of large rows may run on other threads.
//!
//! ```
//! # use engine::{Engine, Progress};
//! # use std::time::Duration;
//! const SLICE: Duration = Duration::from_millis(10);
//!
//! fn batch(engine: &mut Engine, mut new_inputs: impl FnMut(&mut Engine), mut publish: impl FnMut(&mut Engine)) {
//!     new_inputs(engine);
//!     while engine.run(SLICE) == Progress::More {
//!         new_inputs(engine); // what came meanwhile joins the batch,
//!         let _ = engine.drain_lane(SLICE); // and the lane does not wait for the end of it.
//!         publish(engine); // `engine.changes::<T>()`: removals are kept back here,
//!     }
//!     publish(engine); // and told here.
//! }
//! ```
//!
//! # When a computation panics
//!
//! The row keeps its last good value; without one it is what [`Derived::on_panic`] makes of it. Everybody else moves on.
//! [`Engine::failed_rows`] lists such rows, [`Reads::failure`] lets a later table make a verdict of it, and the next computation that
//! succeeds ends it.
//!
//! # When something is not known yet
//!
//! A computation that depends on something that is still being fetched says so by [`Reads::set_pending`]. The row keeps its
//! last good value in the same way, or takes what the computation gave; nobody waits. The answer is a change of an input
//! like any other, and ends it. What is kept depends on history, so a build from nothing is handed the last good values.
//!
//! # When a row takes long
//!
//! A row is never interrupted, but a large one can be computed on another thread, while everybody else moves on: see
//! [`Derived::is_large`] and [`Job`].
//!
//! # When a change reaches many rows
//!
//! A batch can be long although each row is small. What one change reaches can be worked off in parts, so that others are not
//! kept waiting for its end: see [`Engine::limit_fan_out`].
//!
//! Reading order: `table` (what users implement), `pipeline` (how it is declared), `reads`, `store` and `store/compute`
//! (one table), `index`, `engine` (batches and slices), `offload` and `store/jobs` (large rows), `backlog` (many rows), `changes`, `oracle`, then
//! `node`, `slots` and `arena` (keys and dependency records).

mod arena;
mod backlog;
mod changes;
mod counters;
mod engine;
mod erased;
mod index;
mod node;
mod offload;
mod oracle;
mod panicked;
mod pipeline;
mod reads;
mod slots;
mod store;
mod table;

pub use changes::Changes;
pub use counters::{Batch, TableCounters};
pub use engine::{Engine, Offloading, Progress};
pub use offload::{Finished, Job, Replaced};
pub use oracle::Divergence;
pub use panicked::PanickedRow;
pub use pipeline::{Declared, Pipeline};
pub use reads::{Read, Reads};
pub use table::{Derived, Index, Input, Key, PartIndex, Table};
