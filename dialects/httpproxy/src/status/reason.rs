//! The type and reason of an error or warning in the status of an HTTPProxy, by code.
//!
//! Tools that watch HTTPProxies read these words, so they are Contour's wherever it has one. For what Contour does not report
//! or accepts, they are ours and follow the same pattern.

use model::{Code, Verdict};

/// A type and a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Words {
    /// The type of the error or warning: `RouteError`.
    pub kind: &'static str,
    /// The reason: `TimeoutPolicyNotValid`.
    pub reason: &'static str,
}

macro_rules! words {
    ($($($code:ident)|+ => $kind:ident $reason:ident;)*) => {
        /// The type and reason of a code.
        fn of_code(code: Code) -> Words {
            match code {
                $($(Code::$code)|+ => Words { kind: stringify!($kind), reason: stringify!($reason) },)*
                _ => Words { kind: "SpecError", reason: "FieldNotValid" },
            }
        }
    };
}

words! {
    ProxyFqdn => VirtualHostError FQDNNotSpecified;
    ProxyDuplicateFqdn => VirtualHostError DuplicateVhost;
    ProxyRootNamespace => RootNamespaceError RootProxyNotAllowedInNamespace;
    ProxyEmpty | ProxyChildEmpty => SpecError NothingDefined;
    ProxyOrphaned => Orphaned Orphaned;
    ProxyValue => SpecError FieldNotValid;
    DurationTooLong => SpecError DurationTooLong;
    ProxyIgnored | ProxyNotDynamic | OtherClass | RateLimitNoService | RateLimitServiceUnusable | TracingUnusable | SamplingRounded => SpecError IgnoredField;
    ForeignAnnotation | ForeignProtection => SpecError AnnotationNotSupported;
    ProxyTlsConfig => TLSError TLSConfigNotValid;
    ProxyTlsIncompatible | ProxyClientInsecure => TLSError TLSIncompatibleFeatures;
    ProxyClientValidation | CrlExpired | CrlExpiresSoon | CrlMissing | ClientCaExpired | ClientCaExpiresSoon => TLSError ClientValidationInvalid;
    ProxyFallbackMissing => TLSError FallbackNotPresent;
    ProxyFallbackNotDelegated => TLSError FallbackNotDelegated;
    ProxyFallbackNotValid => TLSError FallbackNotValid;
    SecretNotFound | CertificateSelfSigned | SecretType | SecretKeyMissing | CertificateNotPem | PrivateKeyNotPem | KeyMismatch | KeyTooWeak
        | CertificateExpired | CertificateNoName | CertificateOtherHost | CertificateNotServed | SecretPending
        | SecretNotReadable | ClientCertificateNotValid => TLSError SecretNotValid;
    DelegationMissing | WildcardCertificate => TLSError DelegationNotPermitted;
    DelegationTargets => SpecError TargetNamespacesNotValid;
    ProxyCors => CORSError PolicyDidNotParse;
    ProxyIpPolicyBoth => IPFilterError IncompatibleIPAddressFilters;
    ProxyIpPolicy => IPFilterError IPFilterPolicyNotValid;
    ProxyIpPolicyRange => IPFilterError InvalidCIDR;
    ProxyHostRateLimit => VirtualHostError RateLimitPolicyNotValid;
    ProxyIncludePath => IncludeError PathMatchConditionsNotValid;
    ProxyIncludeDuplicate => IncludeError DuplicateMatchConditions;
    ProxyIncludeNotFound => IncludeError IncludeNotFound;
    ProxyIncludesRoot => IncludeError RootIncludesRoot;
    ProxyIncludeCycle => IncludeError IncludeCreatesCycle;
    ProxyIncludeLimit => IncludeError IncludeLimitExceeded;
    ProxyExpansionLimit => IncludeError ExpansionLimitExceeded;
    ProxyRouteAction => RouteError RouteActionCountNotValid;
    ProxyRoutePath | ProxyRouteRegex => RouteError PathMatchConditionsNotValid;
    ProxyRouteHeader => RouteError HeaderMatchConditionsNotValid;
    ProxyRouteQuery => RouteError QueryParameterMatchConditionsNotValid;
    ProxyRequestHeaders => RouteError RequestHeadersPolicyInvalid;
    ProxyResponseHeaders => RouteError ResponseHeaderPolicyInvalid;
    ProxyTimeout => RouteError TimeoutPolicyNotValid;
    ProxyRetry => RouteError RetryPolicyNotValid;
    ProxyRedirect => RouteError RequestRedirectPolicy;
    ProxyDirectResponse => RouteError DirectResponsePolicyNotValid;
    ProxyRateLimit => RouteError RateLimitPolicyNotValid;
    ProxyHealthCheck => RouteError HealthCheckPolicyInvalid;
    ProxyInternalRedirect => RouteError InternalRedirectPolicyNotValid;
    ProxyPrefixMissing => PrefixReplaceError MustHavePrefix;
    ProxyPrefixDuplicate => PrefixReplaceError DuplicateReplacement;
    ProxyPrefixAmbiguous => PrefixReplaceError AmbiguousReplacement;
    ProxyPrefixReplacement => PrefixReplaceError ReplacementNotValid;
    ServiceNotFound | ServicePortNotFound | ServicePortNotTcp | ExternalNameOff | ExternalNameNotAllowed
        | EndpointsNotValid => ServiceError ServiceUnresolvedReference;
    NoEndpoints => ServiceError NoReadyEndpoints;
    ProxyServicePort => ServiceError ServicePortInvalid;
    ProxyServiceProtocol => ServiceError UnsupportedProtocol;
    ProxyServiceRequestHeaders => ServiceError RequestHeadersPolicyInvalid;
    ProxyServiceResponseHeaders => ServiceError ResponseHeadersPolicyInvalid;
    ProxyServiceWeight => ServiceError WeightNotValid;
    ProxySlowStart => ServiceError SlowStartInvalid;
    ProxyUpstreamValidation => ServiceError TLSUpstreamValidation;
    ProxyCaNotDelegated => TLSError CACertificateNotDelegated;
    ProxyMirrors => ServiceError OnlyOneMirror;
    ProxyCookies => RouteError CookieRewritePoliciesInvalid;
    ProxyTcpTls => TCPProxyError TLSMustBeConfigured;
    ProxyTcpEmpty | ProxyTcpChildEmpty => TCPProxyError NothingDefined;
    ProxyTcpBoth => TCPProxyError NoServicesAndInclude;
    ProxyTcpIncludeNotFound => TCPProxyIncludeError IncludeNotFound;
    ProxyTcpIncludesRoot => TCPProxyIncludeError RootIncludesRoot;
    ProxyTcpIncludeCycle => TCPProxyIncludeError IncludeCreatesCycle;
    ExtensionTimeout => SpecError TimeoutPolicyNotValid;
    ExtensionValidation => SpecError TLSUpstreamValidation;
    ExtensionProtocol => SpecError InconsistentProtocol;
    ExtensionServiceType => ServiceError UnsupportedServiceType;
    ExtensionServices => ServiceError ServiceUnresolvedReference;
    ExtensionCircuitBreakers => SpecError CircuitBreakerPolicyNotValid;
    ExtensionNotFound => AuthError ExtensionServiceNotFound;
    ExtensionNotValid => AuthError ExtensionServiceNotValid;
    ExtensionNotPermitted => AuthError ExtensionServiceNotPermitted;
    ProxyJwtNotPermitted => JWTVerificationError JWTVerificationNotPermitted;
    ProxyJwtDuplicate => JWTVerificationError DuplicateProviderName;
    ProxyJwtDefaults => JWTVerificationError MultipleDefaultProvidersSpecified;
    ProxyJwksConflict => JWTVerificationError JWKSSourceConflict;
    ProxyJwksMissing => JWTVerificationError JWKSSourceMissing;
    ProxyLocalJwks => JWTVerificationError LocalJWKSInvalid;
    ProxyJwksUri => JWTVerificationError RemoteJWKSURIInvalid;
    ProxyJwksScheme => JWTVerificationError RemoteJWKSSchemeInvalid;
    ProxyJwksValidation => JWTVerificationError RemoteJWKSUpstreamValidationInvalid;
    ProxyJwksCaNotDelegated => JWTVerificationError RemoteJWKSCACertificateNotDelegated;
    ProxyJwksTimeout => JWTVerificationError RemoteJWKSTimeoutInvalid;
    ProxyJwksCache => JWTVerificationError RemoteJWKSCacheDurationInvalid;
    ProxyJwksPort => JWTVerificationError RemoteJWKSPortInvalid;
    ProxyJwksFamily => JWTVerificationError RemoteJWKSDNSLookupFamilyInvalid;
    ProxyJwtPolicy => JWTVerificationError InvalidJWTVerificationPolicy;
    ProxyJwtUndefined => JWTVerificationError JWTProviderNotDefined;
    ProxyJwtLimit => JWTVerificationError JWTProviderLimitExceeded;
    ProxyJwksNotFetched => JWTVerificationError RemoteJWKSNotFetched;
    ProxyJwksStale => JWTVerificationError RemoteJWKSNotRefreshed;
    ProxyJwksPending => JWTVerificationError RemoteJWKSPending;
    ProxyAuthNotPermitted => AuthError AuthNotPermitted;
    ProxyAuthVersion => AuthError AuthBadResourceVersion;
    ProxyAuthTimeout => AuthError AuthResponseTimeoutInvalid;
    ProxyAuthContextForHttp => AuthError AuthContextForHTTP;
    ProxyAuthContext => AuthError AuthContextNotValid;
    ProxyAuthHeader => AuthError AuthBadAllowedHeader;
    ProxyAuthSettings => AuthError AuthSettingsNotValid;
    ProxyAuthNoServer => AuthError AuthServerNotConfigured;
    CatchAllTooLong => RouteError TooManyRoutes;
    RouteConflict | RouteShadowed => RouteError DuplicateRoute;
    CertificateConflict => TLSError TLSConfigNotValid;
}

/// The type and reason of a verdict. What lies below `tcpproxy` has the type of that.
pub fn of(verdict: &Verdict) -> Words {
    let words = of_code(verdict.code);
    let below = verdict.origin.field.as_str().starts_with("spec.tcpproxy");
    let kind = match words.kind {
        "ServiceError" | "RouteError" | "SpecError" if below => "TCPProxyError",
        kind => kind,
    };
    Words { kind, ..words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_httpproxy_has_a_name_of_its_own() {
        for code in Code::ALL.iter().filter(|code| (5000..6000).contains(&(**code as u16))) {
            let words = of_code(*code);
            let is_default = words.reason == "FieldNotValid";
            assert_eq!(is_default, *code == Code::ProxyValue, "{code}: {words:?}");
        }
    }

    #[test]
    fn what_others_resolve_is_told_in_the_words_of_httpproxy() {
        let words = |code: Code| (of_code(code).kind, of_code(code).reason);
        assert_eq!(words(Code::ServiceNotFound), ("ServiceError", "ServiceUnresolvedReference"));
        assert_eq!(words(Code::KeyMismatch), ("TLSError", "SecretNotValid"));
        assert_eq!(words(Code::DelegationMissing), ("TLSError", "DelegationNotPermitted"));
        assert_eq!(words(Code::ProxyResponseHeaders), ("RouteError", "ResponseHeaderPolicyInvalid"));
    }

    #[test]
    fn what_lies_below_tcpproxy_is_an_error_of_it() {
        let object = model::ObjectRef::new(kinds::kind::CONTOUR_HTTP_PROXY, "a", "b");
        let kind = |field: &str| of(&Verdict::new(Code::ServiceNotFound, object.at(field), "")).kind;
        assert_eq!(kind("spec.tcpproxy.services[0].name"), "TCPProxyError");
        assert_eq!(kind("spec.routes[0].services[0].name"), "ServiceError");
    }
}
