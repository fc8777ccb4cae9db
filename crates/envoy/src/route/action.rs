//! What is done with a request.

use super::retry;
use crate::name;
use envoy_api::{
    envoy::config::{
        core::v3::{DataSource, data_source},
        route::v3::{
            DirectResponseAction, RedirectAction, RouteAction, WeightedCluster,
            redirect_action::SchemeRewriteSpecifier,
            route::Action,
            route_action::{ClusterSpecifier, UpgradeConfig},
            weighted_cluster::ClusterWeight,
        },
    },
    google::protobuf::Duration,
};
use model::{
    Timeout,
    route::{self, Forward, Redirect, Respond},
};

/// The shortest time that Envoy can tell from none.
const SHORTEST: std::time::Duration = std::time::Duration::from_millis(1);

/// The action.
pub fn action(action: &route::Action) -> Action {
    match action {
        route::Action::Forward(forward) => Action::Route(forwarded(forward)),
        route::Action::Redirect(redirect) => Action::Redirect(redirected(redirect)),
        route::Action::Respond(respond) => Action::DirectResponse(responded(respond)),
    }
}

fn forwarded(forward: &Forward) -> RouteAction {
    RouteAction {
        cluster_specifier: Some(clusters(&forward.clusters)),
        timeout: timeout(forward.timeout),
        retry_policy: forward.retry.as_ref().map(retry::retry_policy),
        upgrade_configs: if forward.websocket { vec![websocket()] } else { Vec::new() },
        ..Default::default()
    }
}

fn clusters(clusters: &[route::WeightedCluster]) -> ClusterSpecifier {
    if let [only] = clusters {
        return ClusterSpecifier::Cluster(name::cluster(&only.cluster));
    }
    let clusters = clusters.iter().map(|share| ClusterWeight {
        name: name::cluster(&share.cluster),
        weight: Some(share.weight.into()),
        ..Default::default()
    });
    ClusterSpecifier::WeightedClusters(WeightedCluster { clusters: clusters.collect(), ..Default::default() })
}

fn websocket() -> UpgradeConfig {
    UpgradeConfig { upgrade_type: "websocket".to_owned(), ..Default::default() }
}

/// Envoy reads "nothing said" as its own default and zero as "for ever", and it counts whole milliseconds: less than one
/// must not become none.
pub(crate) fn timeout(timeout: Timeout) -> Option<Duration> {
    match timeout {
        Timeout::Default => None,
        Timeout::Infinite => Some(Duration::default()),
        Timeout::After(span) => Some(span.max(SHORTEST).into()),
    }
}

fn redirected(redirect: &Redirect) -> RedirectAction {
    RedirectAction {
        scheme_rewrite_specifier: Some(SchemeRewriteSpecifier::HttpsRedirect(true)),
        port_redirect: redirect.port.map_or(0, u32::from),
        ..Default::default()
    }
}

fn responded(respond: &Respond) -> DirectResponseAction {
    let body = (!respond.body.is_empty()).then(|| DataSource {
        specifier: Some(data_source::Specifier::InlineString(respond.body.to_string())),
        ..Default::default()
    });
    DirectResponseAction { status: respond.status.into(), body, ..Default::default() }
}
