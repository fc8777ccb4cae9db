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
        column("FQDN", ".spec.virtualhost.fqdn", "The host"),
        column("TLS Secret", ".spec.virtualhost.tls.secretName", "The Secret with its certificate"),
        column("Status", ".status.currentStatus", "Whether it is served"),
        column("Status Description", ".status.description", "Why, in a sentence"),
    ]);
    let about = "A host and its routes, or routes for other HTTPProxies to include.";
    whole(group, &names, root(about, spec(), state()), columns)
}

fn spec() -> Schema {
    object(
        "What is asked for.",
        [
            opt("virtualhost", virtual_host()),
            opt("routes", list("The routes, the most specific first whatever their order.", route::route())),
            opt("includes", list("The children that take some of the requests.", include())),
            opt("tcpproxy", service::tcp_proxy()),
            opt("ingressClassName", text("The class that says which controller this object is for.")),
        ],
    )
}

fn state() -> Schema {
    object(
        "What became of it.",
        [
            opt("conditions", status::conditions()),
            opt("currentStatus", text("`valid`, `invalid` or `orphaned`.")),
            opt("description", text("Why, in a sentence.")),
            opt("loadBalancer", status::load_balancer()),
        ],
    )
    .default(json!({ "currentStatus": "NotReconciled", "description": "Waiting for controller" }))
}

fn include() -> Schema {
    object(
        "A child and the requests that it may take.",
        [
            req("name", text("The child's name.")),
            opt("namespace", text("Its namespace; that of this object if absent.")),
            opt(
                "conditions",
                list("What all its requests must fulfil: prefix, header and queryParameter.", route::condition()),
            ),
        ],
    )
}

fn virtual_host() -> Schema {
    object(
        "The host of a root; a child has none.",
        [
            req("fqdn", text("Its name; `*.` in front stands for one label.").pattern(&format!(r"^(\*\.)?{NAME}$"))),
            opt("tls", tls()),
            opt("authorization", security::authorization()),
            opt("corsPolicy", cors()),
            opt("rateLimitPolicy", policy::rate_limit()),
            opt("jwtProviders", list("Who signs the tokens that routes ask for.", security::jwt_provider())),
            opt("ipAllowPolicy", list("The only clients that may.", security::ip_filter())),
            opt("ipDenyPolicy", list("The clients that may not.", security::ip_filter())),
        ],
    )
}

fn tls() -> Schema {
    let details = object(
        "What the backend is told about it, in the header x-forwarded-client-cert.",
        [
            opt("subject", flag("Its subject.")),
            opt("cert", flag("The certificate.")),
            opt("chain", flag("Its chain.")),
            opt("dns", flag("Its DNS names.")),
            opt("uri", flag("Its URI.")),
        ],
    );
    let client = object(
        "The certificate that clients must have.",
        [
            opt("caSecret", text("The Secret with `ca.crt`: name or namespace/name.").min_length(1)),
            opt("crlSecret", text("The Secret with `crl.pem`: name or namespace/name.").min_length(1)),
            opt("crlOnlyVerifyLeafCert", flag("Only the client's own certificate is looked up in it.")),
            opt("skipClientCertValidation", flag("It is asked for and passed on, not checked.")),
            opt("optionalClientCertificate", flag("Clients without one may pass.")),
            opt("forwardClientCertificate", details),
        ],
    );
    object(
        "How connections are encrypted: by a certificate here, or by the backend.",
        [
            opt("secretName", text("The Secret with certificate and key: name or namespace/name.")),
            opt("minimumProtocolVersion", text("The lowest version: 1.2 (the default) or 1.3.")),
            opt("maximumProtocolVersion", text("The highest version: 1.2 or 1.3 (the default).")),
            opt("passthrough", flag("The backend has the certificate; connections are passed on as they are.")),
            opt("enableFallbackCertificate", flag("Clients that name no host are served too.")),
            opt("clientValidation", client),
        ],
    )
}

fn cors() -> Schema {
    let tokens = |about: &str| list(about, text("").pattern(TOKEN)).min_items(1);
    object(
        "Which other sites may use the host.",
        [
            req("allowOrigin", list("The sites: `*`, an origin, or a regular expression.", text("")).min_items(1)),
            req("allowMethods", tokens("The methods that they may use.")),
            opt("allowHeaders", tokens("The headers that they may send.")),
            opt("exposeHeaders", tokens("The headers that they may read.")),
            opt("allowCredentials", flag("Whether with cookies and the like.")),
            opt("maxAge", duration("How long a browser may remember it; 0 for not at all.", &["0"])),
            opt("allowPrivateNetwork", flag("Whether from a public site to a private address.")),
        ],
    )
}

/// One of some words for a scheme.
fn scheme(about: &str) -> Schema {
    choice(about, &["http", "https"])
}
