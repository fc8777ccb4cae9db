//! The one table of error codes: every problem that Sesame reports has a row here.
//!
//! Status messages, events, the terminal and docs all name a problem by its code, so that a search for `SES3001` finds one
//! page that says what it means and what to do. A number is never used again for something else: that of a removed row is
//! [reserved](RESERVED). The thousands say what the problem is about:
//!
//! | range | about |
//! |---|---|
//! | 1xxx | command line, configuration file, machine |
//! | 2xxx | reading objects |
//! | 3xxx | references: Services, Secrets, delegation |
//! | 4xxx | Ingress |
//! | 5xxx | HTTPProxy |
//! | 6xxx | Gateway API |
//! | 7xxx | conflicts between objects |
//! | 8xxx | Envoy: what it does not support or rejected |
//! | 9xxx | Emissary |

use std::fmt;

/// The numbers of codes that are no longer used.
pub const RESERVED: &[u16] = &[1023, 1025, 8002];

/// How serious a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something that the object asks for is not served.
    Error,
    /// Everything is served, but probably not as intended.
    Warning,
    /// Information; nothing to do.
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

            /// Its name in CamelCase, as the reason of an event: `RouteConflict`.
            pub fn reason(self) -> &'static str {
                match self { $(Code::$name => stringify!($name),)* }
            }

            /// What it means, in one line without the names of objects.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// What to do about it.
            pub fn help(self) -> &'static str {
                match self { $(Code::$name => $help,)* }
            }

            /// How serious it is.
            pub fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    1001 CommandLine Error "the command line is invalid" "run the command with --help; it lists every flag with its default";
    1002 FileNotReadable Error "a file cannot be read" "check the path and its permissions";
    1003 FileNotWritable Error "a file cannot be written" "check that the directory exists and is writable";
    1004 ProgramMissing Error "a required program was not found" "install it, or set its path with the environment variable in the message";
    1005 AddressInUse Error "the address is already in use" "stop the process that uses the port, or choose another port with the flag in the message";
    1006 ConnectionFailed Error "the server cannot be reached" "check the address, and that either both sides use TLS or neither does";
    1007 CertificateFiles Error "the TLS files of the xDS server cannot be used" "generate a valid set with `sesame certgen`";
    1008 EnvoyStopped Error "Envoy exited" "the last lines of its log are shown; it is restarted after a backoff";
    1010 OutputExists Error "the output already exists" "remove it, or replace it with --overwrite";
    1011 ApiServerFailed Error "the API server cannot be reached or denied access" "check the kubeconfig, the namespace, and the RBAC rules of the user";
    1012 StreamEnded Error "the xDS server closed the stream" "the message has the reason; the fleet must match the client certificate";
    1013 CertificatesNotMade Error "the certificates cannot be generated" "use a namespace and a fleet whose names are DNS labels";
    1020 ConfigNotYaml Error "the configuration file is not valid YAML" "fix the syntax at the position shown";
    1021 ConfigUnknown Error "the configuration file contains an unknown key" "correct or remove it; docs/configuration.md lists every key";
    1022 ConfigValue Error "the configuration file contains an invalid value" "use one of the values allowed by the message; docs/configuration.md lists the values of every key";
    1024 SettingNoEffect Warning "the flag or configuration key has no effect" "remove it";
    1026 NamespaceNotWatched Warning "a referenced namespace is not watched" "add the namespace to --watch-namespaces";
    1027 ConfigRejected Error "the changed configuration is rejected as a whole; the previous one stays in effect" "correct what the preceding lines report; a valid configuration takes effect at once";
    1028 ConfigAtStart Warning "the setting cannot be changed while Sesame runs" "restart Sesame for it to take effect";
    1029 StateDiverged Error "an incremental table differs from a full rebuild" "report it with the names in the message; a restart rebuilds everything while proxies keep serving";
    1030 ConfigMissing Error "there is no such ContourConfiguration" "create it in the namespace of Sesame, or correct --sesame-config-name";
    1034 ApiServerError Error "the API server answers with an error" "the request is retried, and what was read before stays in effect; if the error persists, check the API server and its log, and for status 429 its flow control (API Priority and Fairness)";
    1036 DiskCacheIgnored Warning "the disk cache is not used" "starting proxies wait until the API server has been read; the cache is rewritten after the first build. To read a cache that was sealed with a previous key, keep that key in the key file";
    1037 DiskCacheOff Warning "the disk cache is off" "free space in its directory, or mount a key; the write is retried every five minutes. Proxies are served as before";
    1038 StatusContested Warning "another controller keeps changing a status that Sesame writes" "check that Sesame is installed once, or that each installation has an ingress class of its own; the status is written again after an hour";
    1044 XdsCertificateExpires Warning "a certificate of xDS connections expires within 30 days" "renew it: the log of the leader says what a rotation is waiting for; without --xds-certificates-dir run `sesame certgen --overwrite`, or check its issuer";
    1045 XdsCaNotYetValid Warning "the CA of xDS connections is not yet valid according to the leader's clock" "check the clock of the leader's node: the CA is kept, and nothing is signed until it is valid. If the clock is right, the CA was created while a clock was fast: request a new one with `kubectl annotate secret sesame-ca projectsesame.io/rotate-ca=now` in the namespace of Sesame";
    1046 XdsCertificateNotValid Error "the certificate of the xDS server has expired or is not yet valid" "renew it, or check its issuer; xDS is served as soon as the file has a valid one, without a restart, and proxies keep their configuration meanwhile. If its dates are right, check the clock of the node";
    1060 ControllerNotFound Error "no running controller was found" "check --namespace and --selector, or set the address of its debug pages with --address; `kubectl get pods` shows why a pod is not running";
    1061 NotAController Error "the server that answered is not a Sesame controller of this version" "use the address of --debug-http-address and --debug-http-port, and the `sesame` of the controller's version";

    2001 NotYaml Error "the file is not valid YAML" "fix the syntax at the position shown; the last valid objects of the file stay in effect";
    2002 NotDecodable Error "the object does not match the schema of its kind" "correct the named field";
    2003 UnknownKind Note "Sesame does not read this kind" "nothing to do if another controller reads it";
    2004 UnknownField Warning "unknown field" "correct its name or remove it; it has no effect";
    2005 DuplicateObject Error "the object is defined twice" "remove one definition; the first in the order of paths is in effect";
    2006 FileTooLarge Error "the file or object exceeds a size, depth or count limit" "split it";
    2007 NoName Error "kind, apiVersion or name is missing" "add the missing field";
    2008 PemFileNotReadable Error "a PEM file referenced by a Secret cannot be used" "check the path; it must be below the directory";
    2009 OtherVersion Error "unsupported version of the kind" "change apiVersion to the named version; until then the object has no effect";
    2010 DirectoryReadOnce Note "the directory is reached by two paths" "nothing to do; it is read once";
    2011 NotWatched Warning "changes to the directory cannot be watched" "raise the inotify watch limit (fs.inotify.max_user_watches on Linux), or restart after changes";
    2012 KindMisspelt Error "the API group has no such kind" "correct kind; until then the object has no effect";
    2013 NothingServed Error "there is nothing for Sesame to serve" "check the path, and apiVersion, kind and class of the objects; at least one of them must be served";
    2014 OtherClass Warning "the object belongs to a class that Sesame does not serve" "nothing to do if another controller serves the class; else correct it, or name further classes with --ingress-class-name";
    2015 NameNotValid Error "no object of the kind can have this name or namespace" "use lower-case letters, digits and `-`; an API server rejects the object as well";
    2016 DurationTooLong Warning "the duration is longer than a year" "a year is used instead; if that is not enough, write `infinity` where the field allows it";

    3001 ServiceNotFound Error "the Service does not exist" "create it, or correct the name";
    3002 ServicePortNotFound Error "the Service has no such port" "use a port number or name from the Service's spec.ports";
    3003 ServicePortNotTcp Error "the protocol of the Service port cannot be used for this route" "use a TCP port";
    3004 ExternalNameOff Error "Services of type ExternalName are disabled" "set enableExternalNameService if you trust everyone who can write Services";
    3005 ExternalNameNotAllowed Error "the external name is a loopback, link-local or metadata address or name, or not a DNS name" "use a host that is reachable over the network";
    3006 EndpointsNotValid Error "an endpoint is not a valid address and port" "write host:port, separated by commas";
    3007 NoEndpoints Warning "the Service has no ready endpoints" "check that its pods are running and pass their readiness probes";
    3011 EndpointIgnored Warning "an endpoint of an EndpointSlice is not used" "use addresses of pods or of other machines, in a slice of addressType IPv4 or IPv6; the other endpoints are used";
    3101 SecretNotFound Error "the Secret does not exist" "create it, or correct the name";
    3102 SecretType Error "the type of the Secret cannot hold a certificate" "use type kubernetes.io/tls or Opaque with tls.crt and tls.key";
    3103 SecretKeyMissing Error "a key is missing in the Secret" "add the named key";
    3104 CertificateNotPem Error "the certificate is not valid PEM" "tls.crt must contain CERTIFICATE blocks, the leaf certificate first";
    3105 PrivateKeyNotPem Error "the private key is not valid PEM" "tls.key must contain one private key: PKCS#8, PKCS#1 or SEC 1";
    3106 KeyMismatch Error "the private key does not match the certificate" "use the key and certificate of the same request";
    3107 KeyTooWeak Error "Envoy does not support the type or size of the key" "use RSA with 2048 to 8192 bits, or ECDSA on P-256, P-384 or P-521";
    3108 CertificateExpired Warning "the certificate is expired or not yet valid" "renew it; clients reject it";
    3109 CaNotValid Error "the CA bundle contains no usable certificate" "ca.crt must contain CERTIFICATE blocks";
    3110 CertificateNoName Error "the certificate has no subject" "the leaf certificate must have a common name or a subject alternative name";
    3111 CertificateOtherHost Warning "the certificate does not cover the host" "use a certificate with the host among its DNS names; clients reject it";
    3112 SecretNotReadable Error "the Secret cannot be read from the API server" "check the RBAC rules of Sesame's service account and the error in the message; the request is retried";
    3113 SecretPending Error "the Secret has not been read yet" "nothing to do: the last configuration of the object stays in effect until the Secret is read";
    3115 CertificateNotServed Error "Envoy does not support the certificate" "issue it without must-staple, and with digitalSignature among its key usages";
    3120 CrlNotValid Error "the CRLs cannot be used" "crl.pem must contain complete `X509 CRL` blocks, one for each CA, of at most 1 MiB together";
    3121 CrlExpired Warning "a CRL is expired or not yet valid" "publish a new one; until then client certificates of its CA are rejected";
    3122 CrlExpiresSoon Warning "a CRL expires soon" "publish a new one before that; afterwards client certificates of its CA are rejected";
    3123 CrlMissing Warning "a CA of the bundle has no CRL" "add its CRL, or remove the CA from the bundle; client certificates that it signed are rejected";
    3124 ClientCertificateNotValid Error "the client certificate for TLS backends cannot be used" "ask the operator to fix the Secret of tls.envoy-client-certificate; until then TLS backends are not used";
    3125 CertificateSelfSigned Note "the Secret does not exist; a self-signed certificate is served in its place" "create the Secret before the object is applied to a cluster; without it the host has no TLS there";
    3201 DelegationMissing Error "the Secret is not delegated to this namespace" "the owner of the Secret creates a TLSCertificateDelegation that names the Secret and this namespace";
    3202 SecretReserved Error "the Secret belongs to Sesame itself" "use another Secret: the certificates of xDS connections, their CA and the key of the disk cache are for Sesame and its proxies alone";

    4001 IngressHost Error "the host is not a valid host name" "use a lower-case DNS name, optionally with `*.` in front; ports and IP addresses are not allowed";
    4002 IngressPath Error "the path is invalid" "a path begins with `/` and contains no control characters";
    4003 IngressRegex Error "the path is not a valid regular expression" "correct it at the position shown (RE2 syntax), or use pathType Prefix";
    4004 ResourceBackend Error "resource backends are not supported" "use backend.service";
    4005 IngressBackendMissing Error "the path has no backend" "add backend.service with name and port";
    4006 AnnotationValue Error "the value of the annotation is invalid" "use one of the values allowed by the message";
    4007 AnnotationUnknown Warning "unknown annotation" "correct its name or remove it; it has no effect";
    4008 TlsVersions Error "the minimum TLS version is above the maximum" "swap the two annotations";
    4009 PathType Error "unknown path type" "use Exact, Prefix or ImplementationSpecific";
    4010 RedirectWithoutTls Warning "the redirect to HTTPS has no TLS host to redirect to" "add spec.tls for the host, or remove the annotation";
    4011 TlsWithoutHost Warning "a TLS entry has no hosts" "add spec.tls[].hosts: certificates are selected by SNI";
    4012 IngressEmpty Warning "the Ingress has neither rules nor a default backend" "add spec.rules or spec.defaultBackend";
    4013 IngressLimit Error "the Ingress exceeds a limit" "split it; what is within the named limit is served";
    4014 ForeignAnnotation Warning "an annotation of another ingress controller has no effect" "remove it, or use the equivalent annotation or field that Sesame supports";
    4015 ForeignProtection Error "a protection requested by an annotation of another ingress controller is not in effect" "use an equivalent that Sesame supports, such as ipAllowPolicy or rateLimitPolicy of an HTTPProxy, and remove the annotation; with --foreign-protection=refuse such objects answer 503";
    4016 IngressHostAny Warning "the API server rejects `*` as a host" "leave host out for every host, or write a name after it, such as `*.example.com`";

    5001 ProxyFqdn Error "virtualhost.fqdn is missing or not a valid host name" "write a lower-case DNS name, or one with `*.` in front";
    5002 ProxyDuplicateFqdn Error "another root HTTPProxy has the same fqdn" "choose another fqdn, or include this HTTPProxy from the other; the root that the message names is served";
    5003 ProxyRootNamespace Error "root HTTPProxies are not allowed in this namespace" "move the object to one of the root namespaces, or include it from a root there";
    5004 ProxyEmpty Error "the HTTPProxy has no routes, includes or tcpproxy" "add routes, includes or tcpproxy";
    5005 ProxyOrphaned Error "no root includes this HTTPProxy" "include it from a root, or give it a virtualhost";
    5007 ProxyValue Error "the field has the wrong type" "correct the named field";
    5008 ProxyIgnored Warning "the field has no effect" "remove it, or the field it conflicts with";
    5009 ProxyNotDynamic Warning "an unknown dynamic value is used as literal text" "use one of the allowed values, or double the `%` for literal text";
    5010 ProxyTlsConfig Error "the TLS settings are contradictory" "set exactly one of secretName and passthrough, and a minimum version that is not above the maximum";
    5011 ProxyCors Error "corsPolicy is invalid" "correct the named field; an origin is `*`, scheme://host or a regular expression";
    5012 ProxyIpPolicyBoth Error "ipAllowPolicy and ipDenyPolicy are both set" "use one of the two";
    5013 ProxyIpPolicy Error "an IP policy is invalid" "use source Peer or Remote, and an address or CIDR range";
    5014 ProxyIpPolicyRange Error "an IP policy contains an invalid address or CIDR range" "use an address, or a range such as 10.0.0.0/8";
    5015 ProxyHostRateLimit Error "rateLimitPolicy of the virtual host is invalid" "use at least 1 request, a unit of second, minute or hour, and exactly one value in each descriptor entry; the host answers 503 until then";
    5016 ProxyTlsIncompatible Error "two TLS settings are incompatible" "remove one of the two";
    5017 ProxyFallbackMissing Error "enableFallbackCertificate is set, but no fallback certificate is configured" "ask the operator to configure one, or remove the field; clients that send SNI are served";
    5018 ProxyFallbackNotDelegated Error "the fallback certificate is not delegated to this namespace" "the owner of the Secret creates a TLSCertificateDelegation that names the Secret and this namespace";
    5019 ProxyFallbackNotValid Error "the fallback certificate is invalid" "ask the operator to fix the named Secret";
    5020 ProxyIncludePath Error "the path condition of an include is invalid" "an include has at most one path condition: a prefix that begins with `/`";
    5021 ProxyIncludeDuplicate Error "two includes have the same conditions" "change the conditions of one; the first is served";
    5022 ProxyIncludeNotFound Error "the included HTTPProxy does not exist" "create it, or correct its name and namespace; its conditions answer 502 meanwhile";
    5023 ProxyIncludesRoot Error "the included HTTPProxy is a root" "remove its virtualhost, or the include";
    5024 ProxyIncludeCycle Error "the includes form a cycle" "remove the include that closes the cycle";
    5025 ProxyIncludeLimit Error "the includes exceed a limit" "split the root HTTPProxy: the limits are 10000 includes and a depth of 1024";
    5030 ProxyRouteAction Error "the route must have exactly one of services, requestRedirectPolicy and directResponsePolicy" "use exactly one";
    5031 ProxyRoutePath Error "the path condition of the route is invalid" "a route has at most one of prefix, exact and regex, and it begins with `/`";
    5032 ProxyRouteHeader Error "the header conditions are invalid or contradictory" "use a name and one operator, and no two conditions that exclude each other";
    5033 ProxyRouteQuery Error "the query parameter conditions are invalid or contradictory" "use a name and one operator, and one exact value for each parameter";
    5034 ProxyRequestHeaders Error "requestHeadersPolicy is invalid" "name each header once, with a valid header value";
    5035 ProxyResponseHeaders Error "responseHeadersPolicy is invalid" "name each header once, not Host, with a valid header value";
    5036 ProxyTimeout Error "timeoutPolicy is invalid" "write durations such as `1m30s`, or `infinity`";
    5037 ProxyRetry Error "retryPolicy is invalid" "use a count from -1, durations such as `2s`, and the conditions of Envoy's retry_on; the route answers 503 until then";
    5038 ProxyRedirect Error "requestRedirectPolicy is invalid" "correct the named field; path and prefix are mutually exclusive";
    5039 ProxyDirectResponse Error "directResponsePolicy is invalid" "use a status from 200 to 599 and a body of at most 4096 bytes";
    5040 ProxyPrefixMissing Error "pathRewritePolicy requires a prefix condition" "use a prefix condition, or remove pathRewritePolicy";
    5041 ProxyPrefixDuplicate Error "a prefix is replaced more than once" "remove one of the two entries";
    5042 ProxyPrefixAmbiguous Error "two entries replace any prefix" "give one of them a prefix";
    5043 ProxyPrefixReplacement Error "the replacement of a prefix is invalid" "use a path of at most 4096 bytes without control characters; the route answers 503 until then";
    5044 ProxyRateLimit Error "rateLimitPolicy is invalid" "use at least 1 request, a unit of second, minute or hour, and exactly one value in each descriptor entry; the route answers 503 until then";
    5045 ProxyHealthCheck Error "healthCheckPolicy is invalid" "use a path that begins with `/`, whole seconds, and ranges of statuses whose start is below their end; the route answers 503 until then";
    5046 ProxyInternalRedirect Error "internalRedirectPolicy is invalid" "use the statuses 301, 302, 303, 307 and 308, and a number of redirects from 0; the route answers 503 until then";
    5047 ProxyCookies Error "cookieRewritePolicies is invalid" "name each cookie once, with at least one valid attribute";
    5048 ProxyRouteRegex Error "the regular expression of the path condition is invalid" "correct it at the character in the message (RE2 syntax), or use a prefix condition";
    5050 ProxyServicePort Error "the port of the service is invalid" "use a number from 1 to 65535";
    5051 ProxyServiceProtocol Error "the protocol of the service is unknown" "use h2, h2c or tls";
    5052 ProxyServiceRequestHeaders Error "requestHeadersPolicy of the service is invalid" "name each header once, with a valid header value";
    5053 ProxyServiceResponseHeaders Error "responseHeadersPolicy of the service is invalid" "name each header once, not Host, with a valid header value";
    5054 ProxyServiceWeight Error "the weights are invalid" "use weights of at least 0 whose sum is below 4294967296";
    5055 ProxyMirrors Error "the route has more than one mirror" "mirror to one service";
    5056 ProxySlowStart Error "slowStartPolicy is invalid" "use a window such as `10s`, an aggression above 0, and RoundRobin or WeightedLeastRequest";
    5057 ProxyUpstreamValidation Error "validation of the service is invalid" "name a Secret with ca.crt and the subject names of the backend's certificate";
    5058 ProxyCaNotDelegated Error "the CA Secret is not delegated to this namespace" "the owner of the Secret creates a TLSCertificateDelegation that names the Secret and this namespace";
    5060 ProxyTcpTls Error "tcpproxy requires TLS" "set tls.secretName or tls.passthrough";
    5061 ProxyTcpEmpty Error "tcpproxy has neither services nor an include" "add services or include";
    5062 ProxyTcpBoth Error "tcpproxy has both services and an include" "use one of the two";
    5063 ProxyTcpIncludeNotFound Error "the HTTPProxy included by tcpproxy does not exist" "create it, or correct its name and namespace; connections are closed until then";
    5064 ProxyTcpIncludesRoot Error "the HTTPProxy included by tcpproxy is a root" "remove its virtualhost, or the include";
    5065 ProxyTcpIncludeCycle Error "the includes of tcpproxy form a cycle" "remove the include that closes the cycle";
    5070 ProxyChildEmpty Warning "an included HTTPProxy is empty" "add routes or includes to it, or remove the include";
    5071 ProxyTcpChildEmpty Warning "an HTTPProxy included by tcpproxy has no tcpproxy" "add tcpproxy to it, or include another; connections are closed until then";
    5080 ProxyExpansionLimit Error "the root HTTPProxy and its includes exceed a limit" "split the root, or include less; what is within the named limit is served, the rest answers 503";
    5100 ProxyClientValidation Error "clientValidation is invalid" "name a Secret with ca.crt and, with crlSecret, one with crl.pem; the host is not served until then";
    5101 ProxyClientInsecure Error "permitInsecure cannot be used where a client certificate is required" "remove permitInsecure, or set optionalClientCertificate; the route answers 503 over plaintext until then";
    5120 ExtensionTimeout Error "timeoutPolicy of the ExtensionService is invalid" "write durations such as `250ms`, or `infinity`";
    5121 ExtensionValidation Error "validation of the ExtensionService is invalid" "name a Secret with ca.crt and the subject names of the certificate of its Services";
    5122 ExtensionProtocol Error "the protocol of the ExtensionService is unknown or contradicts another field" "use h2, h2c or http/1.1; validation requires h2";
    5123 ExtensionServiceType Error "a Service of the ExtensionService is of a type that cannot be used" "use a Service with endpoints; an external name is not allowed";
    5124 ExtensionServices Error "the services of the ExtensionService are invalid" "name at least one Service in its namespace, with a port from 1 to 65535 and a weight of at least 0";
    5125 ExtensionCircuitBreakers Error "circuitBreakerPolicy of the ExtensionService is invalid" "use numbers from 0 to 4294967295";
    5126 ExtensionNotFound Error "the ExtensionService does not exist" "create it, or correct its name and namespace; requests that need it are denied until then, unless failOpen is set";
    5127 ExtensionNotValid Error "the ExtensionService is not valid" "its status says what to correct; requests that need it are denied until then, unless failOpen is set";
    5128 ProxyAuthNotPermitted Error "authorization requires a host that terminates TLS" "set tls.secretName, or remove authorization.extensionRef";
    5129 ProxyAuthVersion Error "the version of the ExtensionService is not supported" "use projectcontour.io/v1alpha1 or projectsesame.io/v1alpha1, or leave apiVersion out";
    5130 ProxyAuthTimeout Error "responseTimeout of the authorization server is invalid" "write a duration such as `250ms`";
    5131 ProxyAuthContextForHttp Error "an HTTP authorization server cannot receive a context" "remove context, or use serviceType grpc";
    5132 ProxyAuthContext Error "the context of the authorization policy is too large" "shorten it";
    5133 ProxyAuthHeader Error "a pattern of header names is invalid" "set exactly one of exact, prefix, suffix and contains, to the characters of a header name";
    5134 ProxyAuthSettings Error "the settings of the authorization server are invalid" "correct the named field";
    5135 ProxyAuthNoServer Warning "no authorization server is configured for the route" "set authorization.extensionRef of the virtual host, or ask the operator to configure globalExtAuth; requests pass without authorization until then";
    5140 ProxyJwtNotPermitted Error "jwtProviders requires a host that terminates TLS and reads requests" "set tls.secretName and remove tcpproxy, or remove jwtProviders";
    5141 ProxyJwtDuplicate Error "two JWT providers have the same name" "give each provider a name of its own";
    5142 ProxyJwtDefaults Error "more than one JWT provider is the default" "set default for one of them";
    5143 ProxyJwksConflict Error "a JWT provider has both remoteJWKS and localJWKS" "use one of the two";
    5144 ProxyJwksMissing Error "a JWT provider has neither remoteJWKS nor localJWKS" "add one of the two";
    5145 ProxyLocalJwks Error "localJWKS of a JWT provider is invalid" "name a Secret of the same namespace and its entry with a JSON Web Key Set; no token of the provider is accepted until then";
    5146 ProxyJwksUri Error "the uri of a JSON Web Key Set is invalid" "write http or https, a host that is not the local host or a metadata service, and a path";
    5147 ProxyJwksScheme Error "the uri of a JSON Web Key Set is neither http nor https" "use https";
    5148 ProxyJwksValidation Error "validation of a JSON Web Key Set is invalid" "use it with https, and name a Secret with ca.crt and the subject names of the server's certificate";
    5149 ProxyJwksCaNotDelegated Error "the CA Secret of a JSON Web Key Set is not delegated to this namespace" "the owner of the Secret creates a TLSCertificateDelegation that names the Secret and this namespace";
    5150 ProxyJwksTimeout Error "the timeout of a JSON Web Key Set is invalid" "write a duration such as `1s`";
    5151 ProxyJwksCache Error "cacheDuration of a JSON Web Key Set is invalid" "write a duration such as `5m`";
    5152 ProxyJwksPort Error "the uri of a JSON Web Key Set has an invalid port" "use a number from 1 to 65535";
    5153 ProxyJwksFamily Error "dnsLookupFamily of a JSON Web Key Set is unknown" "use auto, v4, v6 or all";
    5154 ProxyJwtPolicy Error "jwtVerificationPolicy is invalid" "set require or disabled, not both";
    5155 ProxyJwtUndefined Error "the route requires a JWT provider that the virtual host does not define" "define it in virtualhost.jwtProviders of the root, or correct the name";
    5156 ProxyJwtLimit Error "the JWT providers exceed a limit" "use fewer providers or audiences, or shorter values";
    5157 ProxyJwksNotFetched Error "the JSON Web Key Set of a JWT provider cannot be fetched" "the message says why; it is retried, and no token of the provider is accepted until then";
    5158 ProxyJwksStale Warning "the JSON Web Key Set of a JWT provider cannot be fetched again" "the message says why; it is retried, and the last keys are used until then";
    5159 ProxyJwksPending Warning "the JSON Web Key Set of a JWT provider has not been fetched yet" "nothing to do; no token of the provider is accepted until then";
    5160 DelegationTargets Warning "the targetNamespaces of the delegation permit fewer namespaces than they seem to" "name the namespaces that may use the Secret, or `*` alone for all of them";
    5180 RateLimitNoService Warning "global rate limits have no effect" "ask the operator to configure rateLimitService, or use a local rate limit";
    5181 RateLimitServiceUnusable Warning "the rate limit service cannot be used" "ask the operator to correct its ExtensionService; until then requests are answered 500, or let through if failOpen is set";
    5182 ExtensionNotPermitted Error "the ExtensionService of another namespace may not be used" "the owner of its namespace creates a ReferenceGrant from HTTPProxy to ExtensionService, or the operator sets enableCrossNamespaceExtensionServices; requests that need it are denied until then, unless failOpen is set";
    5183 ClientCaExpired Warning "a CA of client certificates is expired or not yet valid" "renew it, or remove it from the bundle; client certificates that it signed are rejected";
    5184 ClientCaExpiresSoon Warning "a CA of client certificates expires soon" "add its successor to the bundle, and renew the client certificates that it signed; afterwards they are rejected";
    5190 TracingUnusable Warning "spans are not sent" "correct the ExtensionService that tracing names; requests are served without spans until then";
    5191 SamplingRounded Warning "the percentage is rounded" "use a whole percentage; randomSampling has steps of 0.01";

    6001 GatewayParameters Error "parameters are not supported" "remove parametersRef; what it names is not read";
    6002 GatewayAddress Error "the address cannot be used" "remove it from spec.addresses, or ask for an address that the proxies have";
    6003 GatewayClassNotAccepted Error "the GatewayClass is not accepted" "correct the GatewayClass; its status says what is wrong";
    6004 GatewayUnsupported Warning "the field is not supported and has no effect" "remove it, or use a version that supports it";
    6005 GatewayListener Error "the listener is not valid or not supported" "correct the named field; the listener is not served until then";
    6006 GatewayListenerConflict Error "another listener of the Gateway has the port or the hostname" "change port, protocol or hostname of one of the two";
    6007 GatewayLimit Error "the Gateway has more listeners than the limit" "use fewer listeners; the first 1000 are served";
    6008 GatewayRouteKinds Error "the listener allows a kind of route that cannot attach to it" "name only kinds that suit the protocol";
    6009 GatewayCertificateRef Error "a certificateRef is not valid" "name a Secret of type kubernetes.io/tls that exists; the listener is not served without a certificate";
    6010 ReferenceNotPermitted Error "the reference to another namespace is not permitted" "the owner of the namespace creates a ReferenceGrant for it";
    6011 ListenerSetNotAllowed Error "the Gateway does not allow ListenerSets of this namespace" "ask its owner to allow the namespace in spec.allowedListeners";
    6012 GatewayPortMoved Note "the listener is served on another port" "connect to that port: ports below 1024 need privileges that Envoy does not have here";
    6013 GatewayApiVersion Warning "the CRDs of Gateway API are of a release that Sesame does not support" "install the release that the message names; until then objects are served as far as they can be read";
    6014 GatewayParentNotServed Warning "the parent does not exist or is not served" "correct the reference, or add the Gateway to what is read; nothing to do if another controller serves it";
    6015 GatewayClientCa Error "a CA certificate of the client validation cannot be used" "name a ConfigMap or Secret with ca.crt in spec.tls.frontend; without any, the listener accepts no connections";
    6016 GatewayClientCertificate Error "the client certificate for backends cannot be used" "name a Secret of type kubernetes.io/tls in spec.tls.backend; TLS backends of the Gateway's routes are not used until then";
    6017 GatewayInsecureClients Warning "clients are accepted without a valid certificate" "use the mode AllowValidOnly once all clients have certificates";
    6018 GatewayRouteUnserved Warning "no listener that the route attaches to is served" "correct the listeners; their conditions in the status of the parent say what is wrong";
    6020 GatewayRouteParent Error "the route cannot attach to the parent" "correct parentRefs, or ask the owner of the Gateway to allow the route; the message says why";
    6021 GatewayRouteHostname Error "a hostname of the route is not valid" "write a lower-case DNS name, or one with `*.` in front";
    6022 GatewayRouteRule Error "a rule of the route is not valid or not supported" "correct the named field; requests of the rule are answered with 500 until then";
    6023 GatewayRouteMatch Error "a match of the route is not valid" "correct the named field; the match has no effect until then";
    6024 GatewayRouteFilter Error "a filter of the route is not valid or not supported" "correct or remove it; requests that it is for are answered with 500 until then";
    6025 GatewayRouteBackend Error "a backendRef of the route is not valid" "name a Service and one of its ports; the share of the backend is answered with 500 until then";
    6026 GatewayRouteLimit Error "the route exceeds a limit" "split it; what is within the named limit is served";
    6027 GatewayTlsPolicy Error "the BackendTLSPolicy is not valid" "correct the named field; the backends that it is for are not used until then";
    6028 GatewayTlsPolicyConflict Error "another BackendTLSPolicy is in effect for the Service" "remove one of the two, or name different ports with sectionName";
    6033 GatewayTlsPolicyTarget Error "a target of the BackendTLSPolicy does not exist" "name a Service of the namespace, and a port of it by its name; ports of the Service that no other policy is for are not used until then";
    6901 FleetForbidden Error "the API server denies Sesame a permission that the proxies of the Gateway need" "grant the permissions that `sesame rbac` prints in the namespace of the Gateway; the request is retried";
    6902 FleetQuota Error "a quota of the namespace does not allow the proxies of the Gateway" "raise the quota, or remove something else; the request is retried";
    6903 FleetNameTaken Error "a name that the proxies of the Gateway need is used by an object that Sesame does not manage" "delete or rename the named object; Sesame never takes over objects that it did not create";
    6904 FleetRejected Error "the API server rejects an object of the proxies of the Gateway" "the message has the reason; check spec.infrastructure of the Gateway and the admission policies of the namespace";
    6905 FleetFailed Error "the proxies of the Gateway cannot be created or changed at the moment" "nothing to do if the error does not persist: the request is retried, and existing proxies keep serving";

    7001 RouteConflict Error "another object has the same host, path and conditions" "change one of the two; the one that the message names is served";
    7002 CertificateConflict Error "another object has a different certificate or TLS settings for the same host" "agree on one; those of the object that the message names are in effect";
    7003 RouteShadowed Warning "another route of the same object, or of an included one, matches the same requests" "change the conditions of one, or remove the one that is not served";
    7004 WildcardCertificate Warning "the host has no certificate of its own, and that of the wildcard above it belongs to another namespace" "give the host a certificate, or ask the owner of the wildcard's Secret for a TLSCertificateDelegation to this namespace; until then HTTPS requests for the host get the wildcard's routes";
    7005 CatchAllTooLong Error "the catch-all has more than 100 routes, so names deeper than one label below a wildcard host answer 503" "reduce the routes without a host to 100, or give the names in question a host of their own";
    7006 SharedRoutesLimit Error "more routes are shared by hosts than a limit allows" "share fewer routes, or select fewer of them; the routes of the objects that come first, by age and then by namespace and name, are served; requests for the others answer 503";
    7007 ListenerConflict Error "another listener has the port" "choose another port, or share it: listeners of one owner with one protocol and different hosts can; the listener of the object that comes first, by age and then by namespace and name, is in effect";
    7008 StreamConflict Error "another object has the same TCP or UDP listener" "use another listener; the object that comes first, by age and then by namespace and name, is served";
    7009 HostOfOtherListener Error "the host belongs to another listener of the port" "attach to the listener in the message, or ask its owner for another hostname; requests for the host do not reach this object";
    7010 VerdictsOmitted Warning "the object has more problems than are listed" "fix those listed; the others are reported then";
    7011 UdpIpFilter Error "a UDP listener cannot filter clients by address" "remove the IP filter, or use a NetworkPolicy; datagrams are dropped until then";
    7012 FallbackNotUsed Warning "another object has TLS for every name, so the fallback certificate is not used" "remove one of the two; clients that send the name of the host are served";
    7013 WiderRoutesTooMany Error "wider hosts of the listener have more than 100 routes, so requests for the host that its own routes do not match answer 503" "reduce the routes of the wider host to 100, or add a route for every path to the narrower one";
    7014 SharedRoutesUnused Error "no host selects the routes of the object" "give the object the host name or the labels that a host selects, or create the host; nothing of the object is served until then";
    7015 RouteTakenByPriority Warning "a route of another namespace takes requests by its priority" "lower the priority of the route that the message names, or agree on who serves the path";
    7022 RouteSharedAcrossNamespaces Warning "a route of another namespace gets a share or copies of the requests" "agree with the owner of the object that the message names, or change the match, the weight or the shadow";
    7023 Http3Tls Warning "the host has TLS settings that proxies cannot enforce over HTTP/3" "nothing to do if clients may use TCP, where the host is served without advertising HTTP/3; otherwise remove the setting in the message";

    8001 EnvoyRejected Error "Envoy rejected the configuration generated from the object" "the message has Envoy's error; other objects are not affected";
    8003 TranslationFailed Error "internal error while translating the object" "this is a bug in Sesame: please report it with the object; the last valid configuration stays in effect";
    8004 ResourceTooLarge Error "the configuration generated from the object, or from all objects of its namespace, is too large for Envoy" "have fewer hosts, routes, conditions or endpoints in the object or in its namespace; until then proxies keep its last version, or answer 503 if they have none";
    8010 RouteNotServed Error "the route is not served" "look at the status of the object that the access log names in `route`; it says what is wrong";
    8011 HostNotFound Error "no route is configured for this host" "check the spelling of the host, and the status of the object that should serve it";
    8012 PathNotFound Error "no route of this host matches the request" "check path, method, headers and query parameters against the routes of the host";
    8013 Misdirected Error "the connection was made for another host" "nothing to do: clients repeat the request on a new connection after status 421; a client that does not must send the requested host as SNI";
    8014 HttpVersion Error "the listener does not accept HTTP/1.0" "use a client that speaks HTTP/1.1 or later, or accept HTTP/1.0 with `enable_http10: true` in the Module";
    8024 Redirected Note "the route redirects the request" "nothing to do: the client follows `location`; the access log names the object and field in `route`";

    9001 EmissaryNoEffect Warning "the object has no effect" "remove it; nothing depends on it";
    9002 ModuleKeyIgnored Warning "a key of the Module has no effect" "remove it, or use what the message names in its place";
    9003 EmissaryOlderObjectInEffect Warning "another object of the same kind is in effect" "remove one of the two; only one of them can be in effect";
    9004 ModuleValue Error "a value of the Module is not valid" "correct the key in the message; the default is in effect until then, and Mappings answer 503 if the key protects them";
    9010 EmissaryAnnotation Error "the annotation getambassador.io/config cannot be read" "correct the line of the annotation that the message names; its other objects are read";
    9011 EmissaryAnnotationKind Error "an object in the annotation getambassador.io/config is of an unknown kind" "use a kind of getambassador.io/v3alpha1, v2 or v1";
    9012 EmissaryAnnotationValue Error "a field of an object in the annotation getambassador.io/config cannot be read" "correct the line of the annotation that the message names; the field is not in effect until then";
    9013 EmissaryAnnotationField Warning "an object in the annotation getambassador.io/config has a field that its kind does not have" "correct the spelling, or remove it";
    9014 EmissaryAnnotationNamespace Error "an object in the annotation getambassador.io/config is for another namespace" "remove `namespace`, or put the annotation on an object of that namespace; --emissary-cross-namespace allows it";
    9015 EmissaryAnnotationLimit Error "the annotation getambassador.io/config is too large" "write objects of their own; what precedes the limit is read";
    9016 EmissaryDuplicate Error "an object of the same kind, namespace and name is defined elsewhere" "rename one of the two; the one that the message names is in effect";
    9017 EmissaryAnnotationScope Error "an object in the annotation getambassador.io/config would hold for all namespaces" "write it as an object of its own, or annotate a Service in the namespace of Sesame; --emissary-cross-namespace allows it in every namespace";
    9100 EmissaryField Error "a field of an object of Emissary cannot be read" "write a value of the type in the message; what depends on the field answers 503 until then";
    9101 EmissaryNotServed Error "a field or kind of Emissary is not served yet" "remove it if the rest is to be served without it; docs/emissary.md lists what is served";
    9102 EmissaryIgnored Warning "the field has no effect" "remove it, or use what the message suggests";
    9103 EmissaryHostname Error "the host name cannot be served" "write a DNS name, one with a single `*` at its beginning or end, or `*`; a port may follow";
    9104 EmissaryTls Error "settings of TLS are not valid" "correct the field in the message; whatever uses the settings is not served until then";
    9110 EmissaryListener Error "the Listener is not valid" "correct the field in the message; nothing is served on its port until then";
    9111 EmissaryListenerSettings Warning "the Listener is on the port of a shared listener whose settings differ" "change the settings of Sesame, or give the Listener a port of its own";
    9112 EmissaryListenerUnused Warning "nothing is served on the Listener" "create a TCPMapping for its port, or remove it";
    9120 EmissaryHostDuplicate Error "another Host has the same hostname on a Listener" "remove one of the two; the one that comes first, by age and then by namespace and name, is served";
    9121 EmissaryHostUnbound Error "no Listener binds the Host" "create a Listener whose hostBinding includes the namespace and labels of the Host";
    9122 EmissaryHostTls Error "TLS of the Host is not valid" "correct the field in the message; connections for the Host are closed until then";
    9123 EmissaryAcme Warning "Sesame requests no certificates from an ACME server" "let cert-manager or another issuer write the Secret of tlsSecret";
    9124 EmissaryHostOverridden Warning "a TCPMapping takes the connections of the Host" "remove one of the two if this is not intended; the Host is still served on its other Listeners";
    9125 EmissaryHostContext Warning "the TLSContext of the Host lists other hosts" "add the hostname of the Host to `hosts` of the TLSContext; until then the TLSContext is used anyway";
    9130 MappingMatch Error "the match of the Mapping is not valid" "correct the field in the message";
    9131 MappingService Error "the service of the Mapping is not valid" "write [http://|https://]name[.namespace][:port] of a Service, an IP address or a DNS name outside of the cluster";
    9132 MappingResolver Error "the resolver of the Mapping cannot be used" "name a resolver that exists in the namespace of the Mapping or of Sesame; the endpoint resolver is required for load_balancer";
    9133 MappingWeight Error "the weight of the Mapping is not valid" "write a number from 0 to 100; the Mapping takes no requests until then";
    9134 MappingGroup Error "the Mapping cannot share its requests with others for the same requests" "give all of them the same values of the fields in the message, or different matches";
    9135 MappingRewrite Error "the rewrite or redirect of the Mapping is not valid" "correct the field in the message; requests of the Mapping answer 503 until then";
    9136 MappingPolicy Error "a policy of the Mapping is not valid" "correct the field in the message; requests of the Mapping answer 503 until then";
    9137 MappingUpstreamTls Error "TLS to the service of the Mapping is not valid" "name a TLSContext that exists in the namespace of the Mapping or of Sesame and whose Secrets the Mapping may use; requests of the Mapping answer 503 until then";
    9142 EmissaryOldTls Warning "TLS versions below 1.2 are accepted" "set min_tls_version to v1.2 or v1.3, or remove it: TLS 1.0 and 1.1 are deprecated";
    9200 AuthServiceInvalid Error "the AuthService is not valid" "correct the field in the message; requests of Mappings without bypass_auth answer 503 until then";
    9201 AuthServiceMismatch Error "the AuthService differs from the one in effect in more than its service" "give both the same values in all fields except auth_service; this AuthService is not used until then";
    9202 MappingAuthServiceUnavailable Error "the AuthService of the Mapping cannot be used" "correct the AuthService; requests of the Mapping answer 503 until then";
    9203 AuthServiceNamespace Error "the AuthService is not in the namespace of Sesame" "move it to the namespace of Sesame, or set --emissary-cross-namespace; requests of Mappings without bypass_auth answer 503 until then";
    9210 RateLimitServiceInvalid Error "the RateLimitService is not valid" "correct the field in the message; requests are not limited until then, or are rejected if failure_mode_deny is true";
    9211 MappingLabels Error "the labels of the Mapping are not valid" "correct the label in the message; requests of the Mapping answer 503 until then";
    9212 TracingServiceInvalid Error "the TracingService is not valid" "correct the field in the message; until then requests are not traced, or are traced without the tag that the message names";
    9213 LogServiceInvalid Error "the LogService is not valid" "correct the field in the message; until then no log is sent to its service, or one without the header that the message names";
    9220 TcpMappingInvalid Error "the TCPMapping is not valid" "correct the field in the message; its connections are closed until then";
    9221 TcpMappingConflict Error "the port, host or weight of the TCPMapping cannot be used" "give it another port or host, or remove what the message names";
    9222 TcpMappingTls Error "connections of the TCPMapping cannot be decrypted" "create a Host or a TLSContext for its host, with a certificate, in its namespace or in that of Sesame; connections are closed until then";
}

impl Code {
    /// Whether it is about a field that should not be there, so that its key is what to look at and not its value.
    pub fn is_about_key(self) -> bool {
        use Code::{
            AnnotationUnknown, EmissaryIgnored, ForeignAnnotation, ForeignProtection, GatewayUnsupported, ProxyIgnored,
            UnknownField,
        };
        let keys = [
            AnnotationUnknown,
            EmissaryIgnored,
            ForeignAnnotation,
            ForeignProtection,
            GatewayUnsupported,
            ProxyIgnored,
            UnknownField,
        ];
        keys.contains(&self)
    }
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
            assert!(!RESERVED.contains(&(*code as u16)), "{code} is reserved");
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
