//! JSON Web Key Sets of servers: which ones translations refer to, and what is known of each.
//!
//! Nothing here fetches. [`JwksRefs`] has a row for each server that some translation refers to; whoever feeds the pipeline asks it and
//! puts what came of it into [`JwksStates`], an input like any other. Until there is a row, the keys are not known, and no token of
//! a provider that has them is good: nothing is open meanwhile, and nothing waits.

use crate::{
    certificates::CaBundles,
    settings::ForClusters,
    translations::{TranslationRow, Translations},
};
use engine::{Derived, Index, Input, PartIndex, Reads, Table};
use envoy::bootstrap::DnsFamily;
use model::{
    ObjectRef,
    jwt::{AddressFamily, JwksFetch, JwksState, RemoteJwks},
};
use std::{sync::Arc, time::Duration};

/// What is known of the keys of each server.
pub struct JwksStates;

impl Table for JwksStates {
    type Key = Arc<RemoteJwks>;
    type Value = JwksState;
    const NAME: &'static str = "JSON Web Key Sets";
}

impl Input for JwksStates {}

/// Translations by the servers whose keys they refer to.
pub struct JwksAskedFor;

impl Index for JwksAskedFor {
    type Of = Translations;
    type Key = Arc<RemoteJwks>;
    const NAME: &'static str = "by JSON Web Key Set";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = Arc<RemoteJwks>> {
        fetches(translation).map(|fetch| fetch.source.clone()).collect::<Vec<_>>()
    }
}

/// How a translation wants a server to be asked: how long that may take, and how long keys are good.
impl PartIndex for JwksAskedFor {
    type Part<'v> = Vec<(Duration, Duration)>;

    fn part(source: &Arc<RemoteJwks>, translation: &TranslationRow) -> Vec<(Duration, Duration)> {
        let of_source = fetches(translation).filter(|fetch| fetch.source == *source);
        of_source.map(|fetch| (fetch.timeout, fetch.cache)).collect()
    }
}

fn fetches(translation: &TranslationRow) -> impl Iterator<Item = &JwksFetch> {
    translation.jwt_providers.iter().filter_map(|provider| provider.remote.as_ref())
}

/// How a server is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchSpec {
    /// The CA bundle that its certificate must chain to, in PEM; none where nothing is verified.
    pub ca: Option<Arc<str>>,
    /// The addresses that its name is looked up for.
    pub family: AddressFamily,
    /// How long it may take: the longest that any provider allows.
    pub timeout: Duration,
    /// How long keys are good: the shortest that any provider wants.
    pub cache: Duration,
}

/// The servers that translations refer to.
pub struct JwksRefs;

impl Table for JwksRefs {
    type Key = Arc<RemoteJwks>;
    type Value = FetchSpec;
    const NAME: &'static str = "JSON Web Key Set references";
}

impl Derived for JwksRefs {
    fn compute(&self, source: &Arc<RemoteJwks>, reads: &mut Reads<'_>) -> Option<FetchSpec> {
        let times: Vec<(Duration, Duration)> =
            reads.parts::<JwksAskedFor>(source).into_iter().flat_map(|(_, times)| times).collect();
        let timeout = times.iter().map(|(timeout, _)| *timeout).max()?;
        let cache = times.iter().map(|(_, cache)| *cache).min()?;
        let ca = match &source.trust {
            None => None,
            // A CA that is gone meanwhile is told on the object, which then refers to the server no more.
            Some(trust) => Some(reads.get::<CaBundles>(&trust.ca)?.as_ref().as_ref().ok()?.clone()),
        };
        let family = source.family.unwrap_or(match reads.get::<ForClusters>(&())?.dns_family {
            DnsFamily::Auto => AddressFamily::Auto,
            DnsFamily::V4 => AddressFamily::V4,
            DnsFamily::V6 => AddressFamily::V6,
            DnsFamily::All => AddressFamily::All,
        });
        Some(FetchSpec { ca, family, timeout, cache })
    }
}

/// Declares the input.
pub fn declare_states(pipeline: &mut engine::Pipeline) {
    pipeline.input::<JwksStates>();
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.parts::<JwksAskedFor>();
    pipeline.derived(JwksRefs).per::<JwksAskedFor>().output();
}
