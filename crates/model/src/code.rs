//! The one table of error codes: everything a person reads about what they wrote has a row here.
//!
//! Status messages, events, the terminal, docs and lint all name a problem by its code, so that a search for `SES3001`
//! finds one page that says what it means and what to do. A number is never used for something else; a row is only
//! ever added. The thousands say where the problem lies:
//!
//! | range | about |
//! |---|---|
//! | 1xxx | the command line, files of settings, the machine |
//! | 2xxx | reading objects |
//! | 3xxx | what objects refer to: Services, Secrets, grants |
//! | 4xxx | Ingress |
//! | 5xxx | HTTPProxy |
//! | 6xxx | Gateway API |
//! | 7xxx | what objects do to each other: conflicts, shadowing |
//! | 8xxx | the proxies: what Envoy cannot take or refused |

mod condition;

pub use condition::Condition;

use std::fmt;

/// How much a verdict takes away from the person who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something that was asked for is not there.
    Error,
    /// All of it is there, but hardly as it was meant.
    Warning,
    /// Worth knowing; nothing to do.
    Note,
}

impl Severity {
    /// The word that stands before the code on a terminal.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

macro_rules! codes {
    ($($number:literal $name:ident $severity:ident $title:literal $help:literal;)*) => {
        /// A row of the table; see the [module](self).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Code {
            $(#[doc = $title] $name = $number,)*
        }

        impl Code {
            /// Every row, in the order of the numbers.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// What it means, in one line without the names of objects.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// What to do about it.
            pub fn help(self) -> &'static str {
                match self { $(Code::$name => $help,)* }
            }

            /// How much it takes away.
            pub fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    1001 CommandLine Error "the command line is not right" "run the command with --help; it lists every flag with its default";
    1002 FileNotReadable Error "a file cannot be read" "check the path and its permissions";
    1003 FileNotWritable Error "a file cannot be written" "check that the folder exists and may be written to";
    1004 ProgramMissing Error "a program that is needed is not there" "install it, or name it by the environment variable in the message";
    1005 AddressInUse Error "an address is taken" "stop what uses the port, or choose another by the flag in the message";
    1006 ConnectionFailed Error "a server cannot be reached" "check the address, and that both sides use TLS or both do not";
    1007 CertificateFiles Error "the TLS files of the xDS connection cannot be used" "`sesame certgen` makes a set that works";
    1008 EnvoyStopped Error "Envoy stopped" "its last lines of log are shown; it is started again after a pause";
    1010 OutputExists Error "what is to be written exists already" "remove it, or replace it with --overwrite";
    1011 ApiServerFailed Error "the API server cannot be reached or refuses" "check the kubeconfig, the namespace and the rights of its user";
    1012 StreamEnded Error "the xDS server ended the stream" "its answer says why; a fleet must match the client certificate";
    1013 CertificatesNotMade Error "the certificates cannot be made" "use a namespace and a fleet whose names are DNS labels";
    1020 ConfigNotYaml Error "the configuration file cannot be read as YAML" "mend the syntax at the place shown";
    1021 ConfigUnknown Error "the configuration file has a key that does not exist" "correct its name or remove it; docs/configuration.md lists every key";
    1022 ConfigValue Error "a value in the configuration file cannot be used" "write a value of the form in the message; docs/configuration.md has the form of every key";
    1023 ConfigUnsupported Error "a key of the configuration file is not supported yet" "remove it, or wait for a version that has it";
    1024 SettingNoEffect Warning "a flag or a key of the configuration file has no effect" "remove it";
    1025 FlagUnsupported Warning "a flag is not supported yet" "remove it, or wait for a version that has it; everything else works without it";
    1026 NamespaceNotWatched Warning "something is looked for in a namespace that is not read" "add the namespace to --watch-namespaces";
    1029 StateDiverged Error "a table is not what a build from nothing would make it" "report it with the names in the message; a restart builds everything anew, and proxies serve on meanwhile";

    2001 NotYaml Error "the text is not YAML" "mend the syntax at the place shown; the last good objects of the file stay in force";
    2002 NotDecodable Error "the object does not have the shape of its kind" "correct the field that is named";
    2003 UnknownKind Note "the kind is not one that Sesame reads" "nothing to do if another program reads it";
    2004 UnknownField Warning "the kind has no such field" "correct its name or remove it; it has no effect";
    2005 DuplicateObject Error "the object stands in two places" "remove one of the two; the first in the order of paths is in force";
    2006 FileTooLarge Error "the file or object passes a limit of size, depth or number" "split it";
    2007 NoName Error "the object has no kind, apiVersion or name" "add what is missing";
    2008 PemFileNotReadable Error "a PEM file that a Secret points to cannot be used" "check the path; it must lie below the folder";
    2009 OtherVersion Warning "the kind is read in another version" "change apiVersion to the one that is named; as it is, the object has no effect";
    2010 FolderTwice Note "a folder is reached by two paths" "nothing to do; it is read once";
    2011 NotWatched Warning "changes of a folder cannot be seen" "raise the number of folders that may be watched (on Linux fs.inotify.max_user_watches), or restart after changes";

    3001 ServiceNotFound Error "the Service does not exist" "create it, or correct the name; until then the path answers 503";
    3002 ServicePortNotFound Error "the Service has no such port" "use a port number or name from the Service's spec.ports";
    3003 ServicePortNotTcp Error "the port's protocol cannot carry this route" "point to a TCP port";
    3004 ExternalNameOff Error "the Service is of type ExternalName, and those are switched off" "turn on enableExternalNameService if you trust everyone who may write Services";
    3005 ExternalNameRefused Error "the external name points to this machine, the local link, a metadata service or nowhere" "name a host that is reached over the network";
    3006 EndpointsNotValid Error "an endpoint is not an address and a port" "write host:port, separated by commas";
    3007 NoEndpoints Warning "the Service has no endpoint that is ready" "check that its pods run and pass their readiness probe";
    3101 SecretNotFound Error "the Secret does not exist" "create it, or correct the name";
    3102 SecretType Error "the Secret is not of a type that holds a certificate" "use type kubernetes.io/tls or Opaque with tls.crt and tls.key";
    3103 SecretKeyMissing Error "the Secret lacks an entry" "add the entry that is named";
    3104 CertificateNotPem Error "the certificate cannot be read" "tls.crt must hold PEM blocks CERTIFICATE, the leaf first";
    3105 PrivateKeyNotPem Error "the private key cannot be read" "tls.key must hold one PEM private key: PKCS#8, PKCS#1 or SEC 1";
    3106 KeyMismatch Error "the private key does not belong to the certificate" "put the key and the certificate of one request together";
    3107 KeyTooWeak Error "the key is not of a kind and strength that Envoy serves" "use RSA with 2048 bits or more, or ECDSA P-256, P-384 or P-521";
    3108 CertificateExpired Warning "the certificate is not valid now" "renew it; clients refuse it";
    3109 CaNotValid Error "the CA bundle holds no certificate that can be used" "ca.crt must hold PEM blocks CERTIFICATE";
    3110 CertificateNoName Error "the certificate names nobody" "the leaf must have a common name or a subject alternative name";
    3111 CertificateOtherHost Warning "the certificate is not for the host" "use one with the host among its DNS names; clients refuse it";
    3112 SecretNotReadable Error "the API server does not hand out the Secret" "give Sesame's service account the right to get it, or see why the API server refuses; it is tried again";
    3113 SecretPending Error "the Secret has not been read yet" "nothing to do: what the object asked for before stays in force until it is";
    3115 CertificateNotServed Error "Envoy does not serve a certificate of this kind" "request one without must-staple, and with digitalSignature among its key usages";
    3201 DelegationMissing Error "the Secret of another namespace is not delegated to this one" "its owner adds a TLSCertificateDelegation that names the Secret and this namespace";

    4001 IngressHost Error "the host is not a name that can be matched" "write a lower-case DNS name, or one with `*.` in front; no port, no address";
    4002 IngressPath Error "the path cannot be matched" "a path begins with `/` and has no control characters";
    4003 IngressRegex Error "the path is not a regular expression that Envoy takes" "correct it at the place shown (RE2 syntax), or use pathType Prefix";
    4004 ResourceBackend Error "a `resource` backend is not served" "use backend.service";
    4005 IngressBackendMissing Error "the path has no backend" "add backend.service with name and port";
    4006 AnnotationValue Error "the annotation's value cannot be used" "write a value of the form in the message";
    4007 AnnotationUnknown Warning "no such annotation" "correct its name or remove it; it has no effect";
    4008 TlsVersions Error "the lowest TLS version is above the highest" "swap the two annotations";
    4009 PathType Error "the path type is not known" "use Exact, Prefix or ImplementationSpecific";
    4010 RedirectWithoutTls Warning "the redirect to HTTPS has no TLS host to go to" "add spec.tls for the host, or remove the annotation";
    4011 TlsWithoutHost Warning "a TLS entry names no host" "add spec.tls[].hosts: a certificate is chosen by the name that the client asks for";
    4012 IngressEmpty Warning "the Ingress has neither rules nor a default backend" "add spec.rules or spec.defaultBackend";
    4013 IngressLimit Error "the Ingress passes a limit" "split it; what lies within the limit that is named is served";
    4014 ForeignAnnotation Warning "an annotation of another ingress controller has no effect" "remove it, or say the same in a way that is served here";
    4015 ForeignProtection Error "an annotation of another ingress controller protects nothing here" "use what protects here, such as ipAllowPolicy or rateLimitPolicy of an HTTPProxy, and remove it; --foreign-protection=refuse makes such objects answer 503";

    5001 ProxyFqdn Error "virtualhost.fqdn is missing or not a host name" "write a lower-case DNS name, or one with `*.` in front";
    5002 ProxyDuplicateFqdn Error "another root has the same fqdn" "choose another fqdn, or make this one a child that the other includes; the oldest root is served";
    5003 ProxyRootNamespace Error "roots are not allowed in this namespace" "move the object to one of the root namespaces, or make it a child of a root there";
    5004 ProxyEmpty Error "the HTTPProxy asks for nothing" "add routes, includes or tcpproxy";
    5005 ProxyOrphaned Error "no root includes this HTTPProxy" "include it from a root, or give it a virtualhost";
    5006 ProxyUnsupported Error "the field is not supported yet" "remove it, or wait for a version that has it; what it would protect is not served meanwhile";
    5007 ProxyValue Error "the value is not of the type that the field has" "correct the field that is named";
    5008 ProxyIgnored Warning "the field has no effect here" "remove it, or what it conflicts with";
    5009 ProxyNotDynamic Warning "what looks like a dynamic value is sent as plain text" "use one of the values that are allowed, or double the `%` to say that plain text is meant";
    5010 ProxyTlsConfig Error "the TLS settings contradict each other" "set exactly one of secretName and passthrough, and a minimum version that is not above the maximum";
    5011 ProxyCors Error "corsPolicy cannot be used" "correct the field that is named; an origin is `*`, scheme://host or a regular expression";
    5012 ProxyClientsBoth Error "both ipAllowPolicy and ipDenyPolicy are set" "use one of the two";
    5013 ProxyClients Error "an IP policy cannot be used" "use source Peer or Remote, and an address or range";
    5014 ProxyClientsRange Error "an IP policy has something that is no address and no range" "write an address, or a range such as 10.0.0.0/8";
    5015 ProxyHostLimit Error "rateLimitPolicy of the host cannot be used" "correct the field that is named";
    5016 ProxyTlsIncompatible Error "two TLS settings cannot be used together" "remove one of the two that are named";
    5017 ProxyFallbackMissing Error "enableFallbackCertificate is set, but there is no fallback certificate" "ask the operator to set one, or remove the field; clients that name the host are served meanwhile";
    5018 ProxyFallbackNotDelegated Error "the fallback certificate is not delegated to this namespace" "its owner adds a TLSCertificateDelegation that names the Secret and this namespace";
    5019 ProxyFallbackNotValid Error "the fallback certificate cannot be used" "ask the operator to mend the Secret that is named";
    5020 ProxyIncludePath Error "the path conditions of an include cannot be used" "an include has at most one path condition: a prefix that begins with `/`";
    5021 ProxyIncludeDuplicate Error "two includes have the same conditions" "change the conditions of one; the first is served";
    5022 ProxyIncludeNotFound Error "the included HTTPProxy does not exist" "create it, or correct its name and namespace; its conditions answer 502 meanwhile";
    5023 ProxyIncludesRoot Error "the included HTTPProxy is a root" "remove its virtualhost, or the include";
    5024 ProxyIncludeCycle Error "the includes form a circle" "remove the include that closes it";
    5025 ProxyIncludeLimit Error "there are too many includes, or they are too deep" "split the root: 10000 includes and a depth of 1024 are the limits";
    5030 ProxyRouteAction Error "the route has none or several of services, requestRedirectPolicy and directResponsePolicy" "use exactly one";
    5031 ProxyRoutePath Error "the path conditions of the route cannot be used" "a route has at most one of prefix, exact and regex, and it begins with `/`";
    5032 ProxyRouteHeader Error "the header conditions contradict each other or cannot be used" "use a name and one operator, and no two conditions that exclude each other";
    5033 ProxyRouteQuery Error "the query parameter conditions contradict each other or cannot be used" "use a name and one operator, and one exact value for each parameter";
    5034 ProxyRequestHeaders Error "requestHeadersPolicy cannot be used" "name each header once, with a value that a header can carry";
    5035 ProxyResponseHeaders Error "responseHeadersPolicy cannot be used" "name each header once, not Host, with a value that a header can carry";
    5036 ProxyTimeout Error "timeoutPolicy cannot be used" "write durations such as `1m30s`, or `infinity`";
    5037 ProxyRetry Error "retryPolicy cannot be used" "correct the field that is named";
    5038 ProxyRedirect Error "requestRedirectPolicy cannot be used" "correct the field that is named; path and prefix exclude each other";
    5039 ProxyDirectResponse Error "directResponsePolicy cannot be used" "use a status from 200 to 599 and a body of at most 4096 bytes";
    5040 ProxyPrefixMissing Error "a prefix is to be replaced, but the route matches none" "use a prefix condition, or remove pathRewritePolicy";
    5041 ProxyPrefixDuplicate Error "a prefix is replaced twice" "remove one of the two entries";
    5042 ProxyPrefixAmbiguous Error "two entries replace every prefix" "give one of them a prefix";
    5043 ProxyPrefixReplacement Error "the replacement is not a path" "write a path that begins with `/`";
    5044 ProxyLimit Error "rateLimitPolicy cannot be used" "correct the field that is named";
    5045 ProxyHealthCheck Error "healthCheckPolicy cannot be used" "correct the field that is named";
    5046 ProxyInternalRedirect Error "internalRedirectPolicy cannot be used" "correct the field that is named";
    5047 ProxyCookies Error "cookieRewritePolicies cannot be used" "name each cookie once, and at least one attribute with a value that a cookie can carry";
    5050 ProxyServicePort Error "the port of the service is no port" "use a number from 1 to 65535";
    5051 ProxyServiceProtocol Error "the protocol of the service is not known" "use h2, h2c or tls";
    5052 ProxyServiceRequestHeaders Error "requestHeadersPolicy of the service cannot be used" "name each header once, with a value that a header can carry";
    5053 ProxyServiceResponseHeaders Error "responseHeadersPolicy of the service cannot be used" "name each header once, not Host, with a value that a header can carry";
    5054 ProxyServiceWeight Error "the weights cannot be used" "use weights from 0 whose sum is below 4294967296";
    5055 ProxyMirrors Error "the route has several mirrors" "mirror to one service";
    5056 ProxySlowStart Error "slowStartPolicy cannot be used" "use a window such as `10s`, an aggression above 0, and RoundRobin or WeightedLeastRequest";
    5057 ProxyUpstreamValidation Error "validation of the service cannot be used" "name a Secret with ca.crt and the names that the backend's certificate has";
    5058 ProxyCaNotDelegated Error "the CA's Secret of another namespace is not delegated to this one" "its owner adds a TLSCertificateDelegation that names the Secret and this namespace";
    5060 ProxyTcpTls Error "tcpproxy needs a host with TLS" "set tls.secretName or tls.passthrough";
    5061 ProxyTcpEmpty Error "tcpproxy leads nowhere" "add services or include";
    5062 ProxyTcpBoth Error "tcpproxy has both services and an include" "use one of the two";
    5063 ProxyTcpIncludeNotFound Error "the HTTPProxy that tcpproxy includes does not exist" "create it, or correct its name and namespace; connections are ended meanwhile";
    5064 ProxyTcpIncludesRoot Error "the HTTPProxy that tcpproxy includes is a root" "remove its virtualhost, or the include";
    5065 ProxyTcpIncludeCycle Error "the includes of tcpproxy form a circle" "remove the include that closes it";
    5070 ProxyChildEmpty Warning "an included HTTPProxy has nothing in it" "add routes or includes to it, or remove the include";
    5071 ProxyTcpChildEmpty Warning "an HTTPProxy that a tcpproxy includes has no tcpproxy itself" "add tcpproxy to it, or include another; connections are ended meanwhile";
    5080 ProxyUnfoldLimit Error "the root and all that it includes unfold into more than one root may have" "split the root, or include less; what lies within the limit that is named is served, and the rest answers 503";

    7001 RouteConflict Error "another object has the same host, path and conditions" "change one of the two; the older one, or the one of the stronger kind, is served";
    7002 CertificateConflict Error "another object has the same TLS host with another certificate or other settings" "agree on one; the older one is in force";
    7003 RouteShadowed Warning "another route of the same object, or of what it includes, matches the same requests" "change the conditions of one, or remove the one that is not served";
    7004 WildcardCertificate Warning "the host has no certificate of its own, and that of the wildcard above it belongs to another namespace" "give the host a certificate, or ask the owner of the wildcard's Secret for a TLSCertificateDelegation to this namespace; until then HTTPS requests for the host get the wildcard's routes";
    7010 VerdictsOmitted Warning "there is more to say about the object than is listed" "correct what is listed; the rest is told then";

    8001 EnvoyRefused Error "a proxy refused what was made of the object" "the proxy's text is shown; other objects are not affected";
    8002 ValueTooLarge Error "the value passes a limit of Envoy" "shorten it to the limit in the message";
    8003 TranslationFailed Error "Sesame failed on this object" "this is a defect of Sesame: please report it with the object; what was served before is still served";
    8004 ResourceTooLarge Error "what was made of the object is too large for the proxies" "make it smaller or split it: fewer hosts, routes, conditions or endpoints; until then proxies keep what they had of it, and where they had nothing, requests are answered 503";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SES{:04}", *self as u16)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.title())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_texts_are_texts() {
        for pair in Code::ALL.windows(2) {
            assert!(pair[0] < pair[1], "{} stands before {}", pair[0], pair[1]);
        }
        for code in Code::ALL {
            for text in [code.title(), code.help()] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{code}: {text:?}");
            }
        }
    }

    #[test]
    fn a_code_is_written_with_four_digits() {
        assert_eq!(Code::ServiceNotFound.to_string(), "SES3001");
    }
}
