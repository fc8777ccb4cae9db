//! The dialects: the list of all APIs that objects are written in.
//!
//! A dialect's crate knows what its objects ask for and nothing about tables. Here each is wired to them: which kinds it
//! translates, which it looks up, by which tables and indexes. A new dialect is a file here and a line in [`Dialects::all`]. What the
//! operator sets for one is a row that it reads ([`crate::settings`]).

mod delegation;
mod emissary;
mod extension_service;
pub(crate) mod gateway;
mod http_proxy;
mod ingress;

use crate::view::TableView;
use engine::Reads;
use kinds::{Kind, kind};
use model::{ObjectRef, Translation, status::StatusFacts};

/// An API that objects are written in.
pub trait Dialect: Send + Sync {
    /// The kinds whose objects it translates.
    fn translates(&self) -> &'static [Kind];

    /// The kinds that it looks up besides those that all dialects refer to ([`resolve::KINDS`]).
    fn looks_up(&self) -> &'static [Kind] {
        &[]
    }

    /// Declares the tables and indexes that it looks things up in, and whether Secrets are
    /// [brought on reference](crate::Settings::fetched_secrets).
    fn declare(&self, pipeline: &mut engine::Pipeline, fetched_secrets: bool);

    /// What an object of its kinds asks for; nothing if the object is not there or is not ours.
    fn translate(&self, object: &ObjectRef, view: &mut TableView<'_, '_>) -> Option<Translation>;

    /// Whether an object asks for more than so many routes: translating it takes long.
    fn exceeds(&self, object: &ObjectRef, routes: usize, view: &mut TableView<'_, '_>) -> bool;

    /// Whether what the status of an object says depends on something that is not known yet: then what was said before holds.
    fn awaits_facts(&self, _: &ObjectRef, _: &mut Reads<'_>) -> bool {
        false
    }

    /// The facts about an object with what only the tables know; nothing if there is nothing to add to them.
    fn facts(&self, _object: &ObjectRef, _facts: &StatusFacts, _reads: &mut Reads<'_>) -> Option<StatusFacts> {
        None
    }
}

/// All dialects.
pub struct Dialects(Vec<Box<dyn Dialect>>);

impl Dialects {
    /// All of them.
    pub fn all() -> Self {
        Self(vec![
            Box::new(ingress::IngressDialect),
            Box::new(http_proxy::HttpProxyDialect),
            Box::new(extension_service::ExtensionServiceDialect),
            Box::new(delegation::DelegationDialect),
            Box::new(gateway::GatewayDialect),
            Box::new(emissary::EmissaryDialect),
        ])
    }

    /// The dialect that translates objects of a kind.
    pub fn of(&self, kind: Kind) -> Option<&dyn Dialect> {
        self.iter().find(|dialect| dialect.translates().contains(&kind))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Dialect> {
        self.0.iter().map(|dialect| &**dialect)
    }

    /// The kinds that are read at all. What nobody reads need not be asked for.
    pub fn kinds(&self) -> Vec<Kind> {
        let is_read = |kind: &Kind| {
            resolve::KINDS.contains(kind)
                || self.iter().any(|dialect| dialect.translates().contains(kind) || dialect.looks_up().contains(kind))
        };
        kind::ALL.iter().copied().filter(is_read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_kind_is_translated_by_two_dialects() {
        let dialects = Dialects::all();
        for &kind in kind::ALL {
            let translators = dialects.iter().filter(|dialect| dialect.translates().contains(&kind)).count();
            assert!(translators <= 1, "{kind}: {translators}");
            assert_eq!(dialects.of(kind).is_some(), translators == 1);
        }
    }

    #[test]
    fn every_kind_of_the_table_is_read() {
        // The operator's settings are read by the program itself.
        let others = kind::ALL.iter().copied().filter(|kind| kind.name() != "ContourConfiguration");
        assert_eq!(Dialects::all().kinds(), others.collect::<Vec<_>>());
    }
}
