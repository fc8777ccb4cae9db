//! Who may: addresses, tokens, authorization servers.

use super::{
    super::schema::{Schema, choice, duration, flag, list, number, object, opt, req, text, texts, timeout},
    service,
};

/// Some clients.
pub fn ip_filter() -> Schema {
    object(
        "Some clients, by address.",
        [
            req(
                "source",
                choice("Peer for the connection's, Remote for what trusted proxies tell.", &["Peer", "Remote"]),
            ),
            req("cidr", text("An address or a range of them.")),
        ],
    )
}

/// How the authorization server is asked.
pub fn auth_policy() -> Schema {
    object(
        "How the authorization server is asked.",
        [opt("disabled", flag("Not at all.")), opt("context", texts("What it is told besides."))],
    )
}

/// Who is asked whether a request may pass.
pub fn authorization() -> Schema {
    let reference = object(
        "The ExtensionService.",
        [
            opt("apiVersion", text("Its group and version.").min_length(1)),
            opt("namespace", text("Its namespace; that of this object if absent.").min_length(1)),
            opt("name", text("Its name.").min_length(1)),
        ],
    );
    let body = object(
        "It is sent the body.",
        [
            opt("maxRequestBytes", number("At most so much of it.").int32().min(1).default(1024)),
            opt("allowPartialMessage", flag("A longer one is cut, not refused.")),
            opt("packAsBytes", flag("As bytes, not as text.")),
        ],
    );
    let rule = "!has(self.httpSettings) || (has(self.serviceType) && self.serviceType == 'http')";
    object(
        "Who is asked whether a request may pass.",
        [
            opt("extensionRef", reference),
            opt("serviceType", choice("What the server speaks; grpc if absent.", &["grpc", "http"])),
            opt("httpSettings", http()),
            opt("authPolicy", auth_policy()),
            opt("responseTimeout", timeout("How long it may take.")),
            opt("failOpen", flag("Requests pass when it does not answer.")),
            opt("withRequestBody", body),
        ],
    )
    .rule(rule, "httpSettings is for serviceType http")
}

fn http() -> Schema {
    let header = || {
        object(
            "Some headers: exactly one of the four texts.",
            [
                opt("exact", text("That of this name.")),
                opt("prefix", text("Those that begin so.")),
                opt("suffix", text("Those that end so.")),
                opt("contains", text("Those that have it in their name.")),
                opt("ignoreCase", flag("Upper and lower case are the same.")),
            ],
        )
    };
    object(
        "How it is asked over HTTP.",
        [
            opt("pathPrefix", text("What stands before the path.")),
            opt("allowedAuthorizationHeaders", list("The headers that it is sent.", header())),
            opt("allowedUpstreamHeaders", list("The headers of its answer that the backend is sent.", header())),
        ],
    )
}

/// Who signs tokens.
pub fn jwt_provider() -> Schema {
    let remote = object(
        "The keys, from a server.",
        [
            req("uri", text("Where.").min_length(1)),
            opt("timeout", duration("How long it may take; 1s if absent.", &[])),
            opt("cacheDuration", duration("How long they are good; 5m if absent.", &[])),
            opt("dnsLookupFamily", choice("Which addresses its name is looked up for.", &["auto", "v4", "v6"])),
            opt("validation", service::validation()),
        ],
    );
    let local = object(
        "The keys, from a Secret of this namespace.",
        [req("secretName", text("The Secret.").min_length(1)), req("key", text("Its entry.").min_length(1))],
    );
    object(
        "Who signs tokens.",
        [
            req("name", text("The name that routes know it by.").min_length(1)),
            opt("default", flag("It is meant where a route names none.")),
            opt("issuer", text("The issuer that a token must name.")),
            opt("audiences", list("The audiences of which it must name one.", text(""))),
            opt("forwardJWT", flag("The backend is sent the token.")),
            opt("remoteJWKS", remote),
            opt("localJWKS", local),
        ],
    )
    .rule("has(self.remoteJWKS) != has(self.localJWKS)", "exactly one of remoteJWKS and localJWKS must be set")
}

/// Which token a route asks for.
pub fn jwt_verification() -> Schema {
    object("Which token is asked for.", [opt("require", text("One of this provider.")), opt("disabled", flag("None."))])
}
