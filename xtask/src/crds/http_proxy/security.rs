//! Who may: addresses, tokens, authorization servers.

use super::{
    super::schema::{Schema, choice, duration, flag, list, number, object, opt, req, text, texts, timeout},
    service,
};

/// Some clients.
pub fn ip_filter() -> Schema {
    object(
        "A range of client addresses.",
        [
            req(
                "source",
                choice(
                    "Which address is compared: `Peer`, the other end of the connection, which may be \
                     a load balancer; `Remote`, the client as reported by trusted proxies in \
                     x-forwarded-for (network.num-trusted-hops) or by the PROXY protocol.",
                    &["Peer", "Remote"],
                ),
            ),
            req("cidr", text("An address, or a range such as 10.0.0.0/8 or 2001:db8::/32.")),
        ],
    )
}

/// How the authorization server is asked.
pub fn auth_policy() -> Schema {
    object(
        "Whether requests are authorized, and with which context.",
        [
            opt("disabled", flag("Do not ask the authorization server.")),
            opt(
                "context",
                texts(
                    "Keys and values sent to a gRPC authorization server with each request. Those of a route \
                     are merged over those of the virtual host; at most 8 KiB.",
                ),
            ),
        ],
    )
}

/// Who is asked whether a request may pass.
pub fn authorization() -> Schema {
    let reference = object(
        "The ExtensionService whose Services are the authorization servers.",
        [
            opt(
                "apiVersion",
                text("Group and version: projectcontour.io/v1alpha1 or projectsesame.io/v1alpha1.").min_length(1),
            ),
            opt("namespace", text("Namespace of the ExtensionService; that of this object if not set.").min_length(1)),
            opt("name", text("Name of the ExtensionService.").min_length(1)),
        ],
    );
    let body = object(
        "Send the body of requests to the authorization server, too.",
        [
            opt(
                "maxRequestBytes",
                number(
                    "Maximum number of bytes that are buffered and sent, at most 1 MiB. Longer requests \
                     are answered with 413 unless allowPartialMessage is set.",
                )
                .int32()
                .min(1)
                .default(1024),
            ),
            opt(
                "allowPartialMessage",
                flag("Send the first maxRequestBytes of longer bodies instead of refusing them."),
            ),
            opt("packAsBytes", flag("Send the body as bytes rather than as UTF-8 text.")),
        ],
    );
    let rule = "!has(self.httpSettings) || (has(self.serviceType) && self.serviceType == 'http')";
    object(
        "External authorization: Envoy asks a server about each request before it is forwarded. \
         Requires tls.secretName. Replaces the operator's globalExtAuth for this host.",
        [
            opt("extensionRef", reference),
            opt(
                "serviceType",
                choice(
                    "Protocol of the authorization server: `grpc` (Envoy's ext_authz API, default) or `http`.",
                    &["grpc", "http"],
                ),
            ),
            opt("httpSettings", http()),
            opt("authPolicy", auth_policy()),
            opt(
                "responseTimeout",
                timeout(
                    "How long the server may take for an answer. If not set, that of the \
                     ExtensionService, else 200ms for gRPC and 15s for HTTP.",
                ),
            ),
            opt(
                "failOpen",
                flag(
                    "Let requests pass when the server cannot be reached or does not answer in time; \
                     otherwise they are answered with 403.",
                ),
            ),
            opt("withRequestBody", body),
        ],
    )
    .rule(rule, "httpSettings is for serviceType http")
}

fn http() -> Schema {
    let header = || {
        object(
            "A pattern of header names: exactly one of exact, prefix, suffix and contains.",
            [
                opt("exact", text("The header with this name.")),
                opt("prefix", text("Headers whose name begins with this text.")),
                opt("suffix", text("Headers whose name ends with this text.")),
                opt("contains", text("Headers whose name contains this text.")),
                opt("ignoreCase", flag("Compare without regard to case.")),
            ],
        )
    };
    object(
        "Settings of HTTP authorization servers; for serviceType http.",
        [
            opt(
                "pathPrefix",
                text("Prefix of the path of authorization requests, in front of that of the client's request."),
            ),
            opt(
                "allowedAuthorizationHeaders",
                list(
                    "Accepted for Contour's sake: the server is sent all headers, and the list is a warning.",
                    header(),
                ),
            ),
            opt(
                "allowedUpstreamHeaders",
                list("Headers of the server's answer that are added to the request to the backend.", header()),
            ),
        ],
    )
}

/// Who signs tokens.
pub fn jwt_provider() -> Schema {
    let remote = object(
        "JSON Web Key Set from a server. Sesame fetches it and keeps the last good keys while the \
         server is away.",
        [
            req(
                "uri",
                text(
                    "URI of the document, http or https. Addresses of the machine itself, link-local and \
                     metadata addresses are refused.",
                )
                .min_length(1),
            ),
            opt("timeout", duration("How long a fetch may take; 1s if not set, at most 30s.", &[])),
            opt("cacheDuration", duration("When the document is fetched again; 5m if not set, at least 10s.", &[])),
            opt(
                "dnsLookupFamily",
                choice(
                    "Address families that the host name is resolved to; the operator's \
                     cluster.dns-lookup-family if not set.",
                    &["auto", "v4", "v6"],
                ),
            ),
            opt("validation", service::validation()),
        ],
    );
    let local = object(
        "JSON Web Key Set from a Secret of this namespace.",
        [
            req("secretName", text("Name of the Secret.").min_length(1)),
            req("key", text("Key of the Secret whose value is the document.").min_length(1)),
        ],
    );
    object(
        "An issuer of JSON Web Tokens and its keys. A token that is missing or not valid is \
         answered with 401.",
        [
            req("name", text("Name that routes refer to; unique in the virtual host.").min_length(1)),
            opt(
                "default",
                flag("Require a token of this provider on all routes that say nothing else. At most one provider."),
            ),
            opt("issuer", text("Required claim iss; any issuer if not set.")),
            opt("audiences", list("The claim aud must contain one of these; any audience if not set.", text(""))),
            opt("forwardJWT", flag("Forward the token to the backend; otherwise it is removed.")),
            opt("remoteJWKS", remote),
            opt("localJWKS", local),
        ],
    )
    .rule("has(self.remoteJWKS) != has(self.localJWKS)", "exactly one of remoteJWKS and localJWKS must be set")
}

/// Which token a route asks for.
pub fn jwt_verification() -> Schema {
    object(
        "Which token requests of this route must have. Without it, one of the default provider, if \
         there is one.",
        [
            opt("require", text("Name of a provider of the root's virtual host. Not together with disabled.")),
            opt("disabled", flag("Require no token. Not together with require.")),
        ],
    )
}
