//! Keys about the authorization server that is asked about all routes whose objects do not say otherwise.

use super::row::{Row, rows};
use super::value::{BOOLEAN, Wrong, boolean, namespaced, part, text};
use kinds::http_proxy::security::{AuthorizationServer, ExtensionServiceReference};
use kinds::{Node, Value, kind};
use pipeline::authorization::{GlobalAuthorization, of_operator};
use pipeline::extensions::ExtensionName;

const AS_IN_OBJECTS: &str = "as in `virtualhost.authorization` of an HTTPProxy";

/// What the file says about the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Authorization {
    /// The namespace and the name of its ExtensionService.
    extension: Option<(String, String)>,
    server: AuthorizationServer,
}

impl Authorization {
    /// What cannot be together.
    pub fn contradiction(&self) -> Option<String> {
        if self.extension.is_none() && self.server != AuthorizationServer::default() {
            return Some("the ExtensionService is required".to_owned());
        }
        of_operator(&self.server).err()
    }

    /// Puts it into the settings, if there is a server.
    pub fn apply(self, settings: &mut pipeline::Settings) {
        if let Some((namespace, name)) = self.extension
            && let Ok(server) = of_operator(&self.server)
        {
            let extension = ExtensionName { namespace: namespace.into(), name: name.into() };
            settings.authorization = Some(GlobalAuthorization { extension, settings: server });
        }
    }
}

/// The server, and how it is asked.
pub const AUTHORIZATION: &[Row] = rows! {
    works("globalExtAuth.extensionService" = "globalExtAuth.extensionRef", "`namespace/name`", "", "ExtensionService of the authorization server that checks all routes of all APIs, over HTTP and HTTPS, unless their objects say otherwise; the keys below hold also for hosts that name it themselves", |c, n| c.authorization.extension = extension(n)?);
    works("globalExtAuth.serviceType" = "globalExtAuth.serviceType", "`grpc` or `http`", "grpc", "protocol of the authorization server, also for hosts that name it", |c, n| c.authorization.server.service_type = Some(text(n)?).filter(|word| word != "grpc").map(Into::into));
    works("globalExtAuth.httpSettings" = "globalExtAuth.httpSettings", AS_IN_OBJECTS, "", "settings of HTTP authorization servers, also for hosts that name the server; `allowedAuthorizationHeaders` has no effect", |c, n| c.authorization.server.http_settings = Some(part(n)?));
    works("globalExtAuth.failOpen" = "globalExtAuth.failOpen", BOOLEAN, "false", "allow requests when the service is unavailable; otherwise they are answered 403, also of hosts that name it", |c, n| c.authorization.server.fail_open = boolean(n)?);
    works("globalExtAuth.authPolicy" = "globalExtAuth.authPolicy", AS_IN_OBJECTS, "", "authorization policy of routes without one; its context is sent also for hosts that name the server", |c, n| c.authorization.server.auth_policy = Some(part(n)?));
    works("globalExtAuth.responseTimeout" = "globalExtAuth.responseTimeout", "a duration such as `250ms`", "", "response timeout, also for hosts that name the server and set none; that of the ExtensionService if not set, else 200ms for gRPC and 15s for HTTP", |c, n| c.authorization.server.response_timeout = Some(text(n)?.into()));
    works("globalExtAuth.withRequestBody" = "globalExtAuth.withRequestBody", AS_IN_OBJECTS, "", "how much of the request body is sent to the authorization server, also for hosts that name it", |c, n| c.authorization.server.with_request_body = Some(part(n)?));
};

/// `namespace/name`, or a reference, as an object has it.
fn extension(node: &Node<'_>) -> Result<Option<(String, String)>, Wrong> {
    if !matches!(node.value, Value::Map(_)) {
        return namespaced(node);
    }
    let ExtensionServiceReference { api_version, namespace, name } = part(node)?;
    if let Some(version) = api_version.filter(|version| kind::of(version, "ExtensionService").is_none()) {
        return Err(Wrong::new(format!("there is no ExtensionService of `{version}`")).field("apiVersion"));
    }
    match (namespace, name) {
        (Some(namespace), Some(name)) => Ok(Some((namespace.into(), name.into()))),
        _ => Err(Wrong::new("both namespace and name are required")),
    }
}
