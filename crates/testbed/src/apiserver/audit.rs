//! What an API server was asked, by whom, and whether it allowed that: its audit log.
//!
//! In: an API server [with an audit log](super::Config::audit). Out: its [`AuditEntry`]s so far. Only who asked for what
//! is recorded, no contents. A request stands there once it is answered; a watch, as soon as it has begun.

use serde_json::Value;

use super::{ApiServer, Error};

pub const POLICY_FILE: &str = "audit-policy.yaml";
pub const LOG_FILE: &str = "audit.log";

/// All requests, without what was in them.
pub const POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Who asked; of an impersonated user, that user.
    pub user: String,
    /// What was to be done: `get`, `list`, `watch`, `create`, `patch` …
    pub verb: String,
    /// The API group; empty for the core group, and for what is no resource.
    pub group: String,
    /// The resource and its subresource: `ingresses/status`. Empty for what is no resource, such as `/readyz`.
    pub resource: String,
    /// The namespace; empty for all namespaces, and for what is in none.
    pub namespace: String,
    /// The object's name; empty for a collection.
    pub name: String,
    /// Whether the user has the right to it.
    pub allowed: bool,
    /// Whether it created an object, which a server-side apply may do, too: that needs the right to create beside that to patch.
    pub created: bool,
}

impl AuditEntry {
    fn read(line: &str) -> Option<AuditEntry> {
        let entry: Value = serde_json::from_str(line).ok()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let user = match &entry["impersonatedUser"] {
            Value::Null => &entry["user"],
            impersonated => impersonated,
        };
        let object = &entry["objectRef"];
        let resource = match object["subresource"].as_str() {
            Some(subresource) => format!("{}/{subresource}", text(&object["resource"])),
            None => text(&object["resource"]),
        };
        Some(AuditEntry {
            user: text(&user["username"]),
            verb: text(&entry["verb"]),
            group: text(&object["apiGroup"]),
            resource,
            namespace: text(&object["namespace"]),
            name: text(&object["name"]),
            allowed: entry["annotations"]["authorization.k8s.io/decision"] == "allow",
            created: entry["responseStatus"]["code"] == 201,
        })
    }
}

impl ApiServer {
    /// Everything that it was asked so far. There is nothing without [`Config::audit`](super::Config::audit).
    pub fn audit(&self) -> Result<Vec<AuditEntry>, Error> {
        let path = self.state.path().join(LOG_FILE);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(|source| Error::Read { path, source })?,
        };
        // The last line may still be on its way.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        Ok(whole.lines().filter_map(AuditEntry::read).collect())
    }
}
