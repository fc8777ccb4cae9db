//! `grpc_stats` of the Module: of which methods proxies keep statistics, on Listeners with ports of their own.

use super::http::invalid;
use crate::Problems;
use kinds::emissary::module::{ModuleSettings, filters::GrpcStatsService};
use model::listener::{GrpcMethods, GrpcStats};
use std::sync::Arc;

/// The most methods of all services together: each has statistics of its own in each cluster.
const MOST_METHODS: usize = 256;

/// The longest name.
const LONGEST: usize = 256;

/// Reads them; `services` wins over `all_methods`.
pub fn read(written: &ModuleSettings, problems: &mut Problems<'_>) -> Option<Arc<GrpcStats>> {
    let stats = problems.optional("grpc_stats", &written.grpc_stats)?;
    let methods = match stats.services.as_deref().unwrap_or_default() {
        [] if stats.all_methods.unwrap_or_default() => GrpcMethods::Each,
        [] => GrpcMethods::Together,
        services => match listed(services) {
            Some(listed) => listed,
            None => {
                let why = format!("must have a name and method_names each, {MOST_METHODS} methods at most");
                problems.refuse(invalid("grpc_stats.services", why));
                GrpcMethods::Together
            }
        },
    };
    Some(Arc::new(GrpcStats { methods, upstream: stats.upstream_stats.unwrap_or_default() }))
}

fn listed(services: &[GrpcStatsService]) -> Option<GrpcMethods> {
    let is_name =
        |name: &str| (1..=LONGEST).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic() && b != b'/');
    let count: usize = services.iter().map(|service| service.method_names.len()).sum();
    let is_good = |service: &GrpcStatsService| {
        is_name(&service.name)
            && !service.method_names.is_empty()
            && service.method_names.iter().all(|name| is_name(name))
    };
    let one = |service: &GrpcStatsService| {
        (Arc::from(&*service.name), service.method_names.iter().map(|name| Arc::from(&**name)).collect())
    };
    let is_good = count <= MOST_METHODS && services.iter().all(is_good);
    is_good.then(|| GrpcMethods::Listed(services.iter().map(one).collect()))
}
