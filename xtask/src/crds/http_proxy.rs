//! HTTPProxy: the object, its host and its children.

pub(super) mod policy;
pub(super) mod route;
pub(super) mod security;
pub(super) mod service;

use super::{
    Names, crd as whole,
    schema::{Schema, choice, duration, flag, list, object, opt, req, root, text},
    status,
};
use serde_json::{Value, json};

/// Labels of a DNS name.
const NAME: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
/// The characters of a header name.
const TOKEN: &str = r"^[a-zA-Z0-9!#$%&'*+.^_`|~-]+$";

/// The CRD for a group.
pub fn crd(group: &str) -> Value {
    let names = Names {
        kind: "HTTPProxy",
        version: "v1",
        singular: "httpproxy",
        plural: "httpproxies",
        short: &["proxy", "proxies"],
    };
    let column = |name: &str, path: &str, about: &str| json!({ "name": name, "jsonPath": path, "description": about, "type": "string" });
    let columns = json!([
        column("FQDN", ".spec.virtualhost.fqdn", "The fully qualified domain name that the proxy serves"),
        column("TLS Secret", ".spec.virtualhost.tls.secretName", "The Secret with the certificate of the host"),
        column("Status", ".status.currentStatus", "valid, invalid or orphaned"),
        column("Status Description", ".status.description", "The first error, or that the object is valid"),
    ]);
    let about = "HTTPProxy describes a virtual host with its routes (a root), or routes that other \
                 HTTPProxies include (a child). Proxies serve it as soon as it is written; status says \
                 whether it is valid and whether proxies have it.";
    whole(group, &names, root(about, spec(), state()), columns)
}

fn spec() -> Schema {
    object(
        "The virtual host, its routes, includes and TCP proxying. At least one of routes, \
         includes and tcpproxy must be set.",
        [
            opt("virtualhost", virtual_host()),
            opt(
                "routes",
                list(
                    "Routes: which requests, and what is done with them. Their order does not matter: \
                     exact paths are tried before regular expressions and these before prefixes, longer \
                     paths before shorter ones, and more conditions before fewer.",
                    route::route(),
                ),
            ),
            opt(
                "includes",
                list(
                    "Other HTTPProxies, of this or another namespace, that receive the requests matching \
                     the conditions. A child cannot match requests outside of them.",
                    include(),
                ),
            ),
            opt("tcpproxy", service::tcp_proxy()),
            opt(
                "ingressClassName",
                text(
                    "Class of the controller that serves this object. The annotations \
                     projectsesame.io/ingress.class, projectcontour.io/ingress.class and \
                     kubernetes.io/ingress.class take precedence. Without a class it is served unless the \
                     controller is started with --ingress-class-name.",
                ),
            ),
        ],
    )
}

fn state() -> Schema {
    object(
        "What Sesame made of the object; written by the controller.",
        [
            opt("conditions", status::conditions()),
            opt(
                "currentStatus",
                text(
                    "`valid`: everything is served. `invalid`: there are errors; what they do not affect \
                     is served. `orphaned`: a child that no root includes.",
                ),
            ),
            opt(
                "description",
                text(
                    "The first error with code and field and the number of further ones, or that the \
                     object is valid.",
                ),
            ),
            opt("loadBalancer", status::load_balancer()),
        ],
    )
    .default(json!({ "currentStatus": "NotReconciled", "description": "Waiting for controller" }))
}

fn include() -> Schema {
    object(
        "An HTTPProxy without virtualhost, and the requests that it receives.",
        [
            req(
                "name",
                text(
                    "Name of the HTTPProxy. If it does not exist, or has a virtualhost itself, requests \
                     that match the conditions are answered with 502.",
                ),
            ),
            opt("namespace", text("Namespace of the HTTPProxy; that of this object if not set.")),
            opt(
                "conditions",
                list(
                    "Conditions of all requests that the child receives: at most one prefix, any \
                     number of headers and query parameters. Prefixes of include and child are \
                     joined: /shop and /cart make /shop/cart.",
                    route::condition(),
                ),
            ),
        ],
    )
}

fn virtual_host() -> Schema {
    object(
        "The virtual host that this HTTPProxy is the root of. Without it the object is a child, \
         which is served only where it is included.",
        [
            req(
                "fqdn",
                text(
                    "Fully qualified domain name, in lower case. `*.example.com` matches exactly one \
                     label below example.com. If several roots have the same name, the oldest is served \
                     and the others report an error.",
                )
                .pattern(&format!(r"^(\*\.)?{NAME}$")),
            ),
            opt("tls", tls()),
            opt("authorization", security::authorization()),
            opt("corsPolicy", cors()),
            opt("rateLimitPolicy", policy::rate_limit()),
            opt(
                "jwtProviders",
                list(
                    "Issuers of JSON Web Tokens. Routes require a token of the default provider, or of \
                     the one that their jwtVerificationPolicy names. Requires tls.secretName.",
                    security::jwt_provider(),
                ),
            ),
            opt(
                "ipAllowPolicy",
                list(
                    "Only clients with these addresses are served; others are answered with 403. Not \
                     together with ipDenyPolicy. A list of a route replaces this one.",
                    security::ip_filter(),
                ),
            ),
            opt(
                "ipDenyPolicy",
                list(
                    "Clients with these addresses are answered with 403. Not together with ipAllowPolicy. \
                     A list of a route replaces this one.",
                    security::ip_filter(),
                ),
            ),
        ],
    )
}

fn tls() -> Schema {
    let details = object(
        "What backends learn about the client certificate, in the request header \
         x-forwarded-client-cert. A header of that name sent by the client is removed.",
        [
            opt("subject", flag("Include the subject.")),
            opt("cert", flag("Include the certificate, URL-encoded PEM.")),
            opt("chain", flag("Include the whole certificate chain, URL-encoded PEM.")),
            opt("dns", flag("Include the DNS subject alternative names.")),
            opt("uri", flag("Include the URI subject alternative name.")),
        ],
    );
    let client = object(
        "Client certificates (mutual TLS). If the CA or the CRL cannot be used, the host is not \
         served at all.",
        [
            opt(
                "caSecret",
                text(
                    "Secret whose key `ca.crt` has the CA certificates that client certificates must \
                     chain to: `name`, or `namespace/name` with a TLSCertificateDelegation. Required \
                     unless skipClientCertValidation is set.",
                )
                .min_length(1),
            ),
            opt(
                "crlSecret",
                text(
                    "Secret whose key `crl.pem` has certificate revocation lists, one for every CA of the \
                     bundle: `name`, or `namespace/name` with a TLSCertificateDelegation. Clients of a CA \
                     without a valid list are refused.",
                )
                .min_length(1),
            ),
            opt(
                "crlOnlyVerifyLeafCert",
                flag(
                    "Check only the client's own certificate against the revocation lists, not the \
                     intermediate ones.",
                ),
            ),
            opt(
                "skipClientCertValidation",
                flag(
                    "Request a certificate but do not verify it; the backend has to. Use it with \
                     forwardClientCertificate.",
                ),
            ),
            opt(
                "optionalClientCertificate",
                flag("Serve clients that present no certificate, too. One that is presented must be valid."),
            ),
            opt("forwardClientCertificate", details),
        ],
    );
    object(
        "TLS of the virtual host. Exactly one of secretName (Envoy terminates TLS) and \
         passthrough (the backend does) must be set. With secretName, plaintext requests are \
         redirected to HTTPS unless the route has permitInsecure.",
        [
            opt(
                "secretName",
                text(
                    "Secret with `tls.crt` and `tls.key`: `name`, or `namespace/name` with a \
                     TLSCertificateDelegation of its owner. A renewed Secret takes effect at once and \
                     closes no connection.",
                ),
            ),
            opt(
                "minimumProtocolVersion",
                text(
                    "Minimum TLS version, `1.2` (default) or `1.3`. The operator's minimum holds as well: \
                     the higher one counts.",
                ),
            ),
            opt(
                "maximumProtocolVersion",
                text(
                    "Maximum TLS version, `1.2` or `1.3` (default). The operator's maximum holds as well: \
                     the lower one counts.",
                ),
            ),
            opt(
                "passthrough",
                flag(
                    "Pass TLS connections to the services of tcpproxy unopened, chosen by the server name \
                     (SNI). The backend has the certificate. Routes are then served over plaintext only.",
                ),
            ),
            opt(
                "enableFallbackCertificate",
                flag(
                    "Serve this host also to clients that send no server name (SNI) or an unknown one, \
                     with the operator's fallback certificate. Not together with passthrough, \
                     clientValidation, authorization or jwtProviders.",
                ),
            ),
            opt("clientValidation", client),
        ],
    )
}

fn cors() -> Schema {
    let tokens = |about: &str| list(about, text("").pattern(TOKEN)).min_items(1);
    object(
        "Cross-origin resource sharing: which web sites of other origins browsers allow to use \
         this host. Preflight requests are answered by Envoy.",
        [
            req(
                "allowOrigin",
                list("Allowed origins: `*` for all, `scheme://host[:port]`, or a regular expression (RE2).", text(""))
                    .min_items(1),
            ),
            req("allowMethods", tokens("Allowed methods, such as GET; `*` for all.")),
            opt("allowHeaders", tokens("Request headers that may be sent; `*` for all.")),
            opt("exposeHeaders", tokens("Response headers that scripts may read.")),
            opt(
                "allowCredentials",
                flag("Allow requests with credentials: cookies, authorization headers, client certificates."),
            ),
            opt(
                "maxAge",
                duration(
                    "How long browsers may cache the answer to a preflight request, such as `10m`; `0` \
                     disables the cache. Without it browsers choose.",
                    &["0"],
                ),
            ),
            opt("allowPrivateNetwork", flag("Allow requests from public web sites to hosts with private addresses.")),
        ],
    )
}

/// One of some words for a scheme.
fn scheme(about: &str) -> Schema {
    choice(about, &["http", "https"])
}
