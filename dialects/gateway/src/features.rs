//! What a GatewayClass of ours says that Gateways of it can do, in the names of the API's features.
//!
//! The conformance suite tests what is listed here, so nothing is listed that is not served, or has not passed the suite: client
//! certificates. `docs/gateway-api.md` says what is not served: filters of listeners, routability of addresses.

use kinds::Kind;

/// The features, sorted by name.
pub const SUPPORTED: &[&str] = &[
    "BackendTLSPolicy",
    "BackendTLSPolicySANValidation",
    "GRPCRoute",
    "GRPCRouteNamedRouteRule",
    "GRPCRouteRequestHeaderModifier",
    "Gateway",
    "GatewayAddressEmpty",
    "GatewayHTTPListenerIsolation",
    "GatewayHTTPSListenerDetectMisdirectedRequests",
    "GatewayInfrastructure",
    "GatewayPort8080",
    "GatewayRouteHostnameIntersectionPrecedence",
    "GatewayStaticAddresses",
    "HTTPRoute",
    "HTTPRoute303RedirectStatusCode",
    "HTTPRoute307RedirectStatusCode",
    "HTTPRoute308RedirectStatusCode",
    "HTTPRouteBackendProtocolH2C",
    "HTTPRouteBackendProtocolWebSocket",
    "HTTPRouteBackendRequestHeaderModification",
    "HTTPRouteBackendTimeout",
    "HTTPRouteBackendURLRewrite",
    "HTTPRouteCORS",
    "HTTPRouteDestinationPortMatching",
    "HTTPRouteHostRewrite",
    "HTTPRouteMethodMatching",
    "HTTPRouteNamedRouteRule",
    "HTTPRouteParentRefPort",
    "HTTPRoutePathRedirect",
    "HTTPRoutePathRewrite",
    "HTTPRoutePortRedirect",
    "HTTPRouteQueryParamMatching",
    "HTTPRouteRequestMirror",
    "HTTPRouteRequestMultipleMirrors",
    "HTTPRouteRequestPercentageMirror",
    "HTTPRouteRequestTimeout",
    "HTTPRouteResponseHeaderModification",
    "HTTPRouteRetryCodes",
    "HTTPRouteRetryConnectionError",
    "HTTPRouteSchemeRedirect",
    "ListenerSet",
    "ReferenceGrant",
    "TCPRoute",
    "TLSRoute",
    "TLSRouteModeMixed",
    "TLSRouteModeTerminate",
    "UDPRoute",
];

/// The features without those of kinds that are switched off. The name of a feature begins with that of its kind.
pub fn of(disabled: &[Kind]) -> impl Iterator<Item = &'static str> {
    let is_disabled = |feature: &str| disabled.iter().any(|kind| feature.starts_with(kind.name()));
    SUPPORTED.iter().copied().filter(move |feature| !is_disabled(feature))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_sorted_and_no_more_than_the_api_takes() {
        assert!(SUPPORTED.is_sorted() && SUPPORTED.len() <= 64);
    }

    #[test]
    fn a_kind_that_is_switched_off_has_no_features() {
        use kinds::kind;
        assert_eq!(of(&[]).count(), SUPPORTED.len());
        let left: Vec<_> = of(&[kind::TLS_ROUTE, kind::BACKEND_TLS_POLICY]).collect();
        let gone: Vec<_> = SUPPORTED.iter().filter(|feature| !left.contains(feature)).copied().collect();
        let expected = [
            "BackendTLSPolicy",
            "BackendTLSPolicySANValidation",
            "TLSRoute",
            "TLSRouteModeMixed",
            "TLSRouteModeTerminate",
        ];
        assert_eq!(gone, expected);
    }
}
