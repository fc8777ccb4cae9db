//! Keys about the rate limit service that proxies ask about requests.

use super::row::{Row, rows};
use super::value::{BOOLEAN, Wrong, boolean, name, namespaced, part};
use kinds::Node;
use kinds::http_proxy::rate_limit::GlobalRateLimit as Policy;
use model::listener::RateLimitService;
use model::route::GlobalRateLimit;
use pipeline::extensions::ExtensionName;
use pipeline::settings::{GlobalRateLimits, default_policy};
use std::sync::Arc;

const DESCRIPTORS: &str = "`descriptors` as in an HTTPProxy, and `disabled`";

/// What the file says about the service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateLimit {
    /// The namespace and the name of its ExtensionService.
    extension: Option<(String, String)>,
    service: RateLimitService,
    default: Option<Arc<GlobalRateLimit>>,
    add_namespace: bool,
}

impl RateLimit {
    /// Puts it into the settings, if there is a service.
    pub fn apply(self, settings: &mut pipeline::Settings) {
        let Some((namespace, name)) = self.extension else { return };
        let (namespace, name): (Arc<str>, Arc<str>) = (namespace.into(), name.into());
        settings.http_proxy.global_rate_limits = Some(GlobalRateLimits {
            service: (namespace.clone(), name.clone()),
            default: self.default,
            add_namespace: self.add_namespace,
        });
        settings.rate_limit_service = Some((ExtensionName { namespace, name }, self.service));
    }
}

/// The service, and what it is asked where nobody says so.
pub const RATE_LIMIT: &[Row] = rows! {
    works("rateLimitService.extensionService" = "rateLimitService.extensionService", "`namespace/name`", "", "ExtensionService of the rate limit service; global rate limits have no effect without one", |c, n| c.rate_limit.extension = namespaced(n)?);
    works("rateLimitService.domain" = "rateLimitService.domain", "a name", "contour", "rate limit domain", |c, n| c.rate_limit.service.domain = name(n)?.into());
    works("rateLimitService.failOpen" = "rateLimitService.failOpen", BOOLEAN, "false", "allow requests when the service is unavailable; otherwise they are answered 500", |c, n| c.rate_limit.service.fail_open = boolean(n)?);
    works("rateLimitService.enableXRateLimitHeaders" = "rateLimitService.enableXRateLimitHeaders", BOOLEAN, "false", "add `x-ratelimit` headers to responses", |c, n| c.rate_limit.service.response_headers = boolean(n)?);
    works("rateLimitService.enableResourceExhaustedCode" = "rateLimitService.enableResourceExhaustedCode", BOOLEAN, "false", "answer limited gRPC requests with RESOURCE_EXHAUSTED rather than UNAVAILABLE", |c, n| c.rate_limit.service.resource_exhausted = boolean(n)?);
    works("rateLimitService.defaultGlobalRateLimitPolicy" = "rateLimitService.defaultGlobalRateLimitPolicy", DESCRIPTORS, "", "global rate limit policy of virtual hosts without one", |c, n| c.rate_limit.default = policy(n)?.map(Arc::new));
    works("rateLimitService.addNamespace" = "rateLimitService.addNamespace", BOOLEAN, "false", "begin each descriptor of an HTTPProxy with the entry `namespace` and its namespace, so that no tenant can use up the limits of another; Sesame only", |c, n| c.rate_limit.add_namespace = boolean(n)?);
};

fn policy(node: &Node<'_>) -> Result<Option<GlobalRateLimit>, Wrong> {
    default_policy(&part::<Policy>(node)?).map_err(|(field, why)| Wrong::new(why).field(field.as_str()))
}
