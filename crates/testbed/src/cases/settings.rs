//! What a case says about settings, in the words of the command line; everything else is as Sesame has it by default.

use std::sync::Arc;

use model::ObjectRef;
use model::listener::{AccessLogFormat, AccessLogLevel, Compression, HeadersWithUnderscores, LocalReplyBody};
use model::tls::TlsVersion;
use pipeline::authorization::{GlobalAuthorization, of_operator};
use pipeline::extensions::ExtensionName;
use pipeline::settings::{GlobalRateLimits, Scripts, default_policy};
use serde::Deserialize;
use serde_json::json;

/// The head of a case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    settings: Settings,
}

/// What is not the default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Settings {
    /// `--ingress-class-name`.
    ingress_class_names: Vec<String>,
    /// The namespaces that may have roots.
    root_namespaces: Vec<String>,
    /// `permitInsecure` has no effect.
    disable_permit_insecure: bool,
    /// `--foreign-protection`.
    foreign_protection: Foreign,
    /// The certificate for clients that name no host: `namespace/name`.
    fallback_certificate: Option<String>,
    /// The certificate for TLS backends: `namespace/name`.
    client_certificate: Option<String>,
    /// The lowest TLS version of all hosts, as in the configuration file.
    minimum_protocol_version: Option<String>,
    /// The port of HTTPS that clients know.
    https_port: Option<u16>,
    /// TLS hosts without a Secret get a certificate.
    self_signed: bool,
    /// ExternalName Services are followed.
    external_names: bool,
    /// ExtensionServices of all namespaces may be used.
    cross_namespace_extension_services: bool,
    /// Services may list endpoints.
    listed_endpoints: bool,
    /// `--emissary-cross-namespace`.
    emissary_cross_namespace: bool,
    /// `--emissary-ingress-class`.
    emissary_ingress_class: bool,
    /// `--emissary-lua`.
    emissary_lua: Lua,
    rate_limit_service: Option<RateLimitService>,
    tracing: Option<Tracing>,
    /// The authorization server for all routes, as in the configuration file.
    global_ext_auth: Option<serde_json::Value>,
    access_log: Log,
    access_log_level: Level,
    local_reply_body: ReplyBody,
    compression: Codec,
    headers_with_underscores: Underscores,
    /// Whether the golden part has everything, listeners and metadata too.
    pub(super) print: Print,
}

/// The same as `sesame serve` takes them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Serve {
    /// Flags, without their dashes, and their values.
    pub flags: Vec<(String, String)>,
    /// The text of the configuration file.
    pub file: String,
}

/// How much the golden part shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Print {
    /// What differs from case to case.
    #[default]
    Brief,
    /// All of it.
    Everything,
}

/// The rate limit service.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RateLimitService {
    /// Its ExtensionService: `namespace/name`.
    extension_service: String,
    #[serde(default)]
    fail_open: bool,
    #[serde(default)]
    add_namespace: bool,
    /// The policy of hosts without one.
    #[serde(default)]
    default: Option<serde_json::Value>,
}

impl RateLimitService {
    fn file(&self) -> serde_json::Value {
        let mut file = json!({ "extensionService": self.extension_service, "failOpen": self.fail_open,
            "addNamespace": self.add_namespace });
        if let Some(default) = &self.default {
            file["defaultGlobalRateLimitPolicy"] = default.clone();
        }
        file
    }

    /// The policy must be a good one.
    fn set(&self, settings: &mut pipeline::Settings) -> Option<()> {
        let (namespace, name) = self.extension_service.split_once('/')?;
        let (namespace, name): (Arc<str>, Arc<str>) = (namespace.into(), name.into());
        let extension = ExtensionName { namespace: namespace.clone(), name: name.clone() };
        let service = model::listener::RateLimitService { fail_open: self.fail_open, ..Default::default() };
        settings.rate_limit_service = Some((extension, service));
        let default = self.default.as_ref().map(|policy| serde_json::from_value(policy.clone())).transpose().ok()?;
        let default = default.map(|policy| default_policy(&policy)).transpose().ok()?.flatten().map(Arc::new);
        settings.http_proxy.global_rate_limits =
            Some(GlobalRateLimits { service: (namespace, name), default, add_namespace: self.add_namespace });
        Some(())
    }
}

/// Tracing, without the tags of the pod.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Tracing {
    /// The ExtensionService of the collector: `namespace/name`.
    extension_service: String,
    service_name: Arc<str>,
    random_sampling: String,
    max_path_tag_length: u32,
}

impl Tracing {
    fn file(&self) -> serde_json::Value {
        let Tracing { extension_service, service_name, random_sampling, max_path_tag_length } = self;
        json!({ "extensionService": extension_service, "serviceName": service_name, "includePodDetail": false,
            "randomSampling": random_sampling, "maxPathTagLength": max_path_tag_length })
    }

    fn set(&self, settings: &mut pipeline::Settings) -> Option<()> {
        let (namespace, name) = self.extension_service.split_once('/')?;
        let tracing = model::listener::Tracing {
            service_name: self.service_name.clone(),
            random: model::listener::Percent::parse(&self.random_sampling).ok()?,
            max_path: self.max_path_tag_length,
            ..Default::default()
        };
        settings.tracing = Some((ExtensionName { namespace: namespace.into(), name: name.into() }, Arc::new(tracing)));
        Some(())
    }
}

/// The authorization server for all routes.
///
/// # Panics
/// When it cannot be used.
fn global_authorization(file: &serde_json::Value) -> GlobalAuthorization {
    let name = file["extensionService"].as_str().and_then(|name| name.split_once('/'));
    let (namespace, name) = name.unwrap_or_else(|| panic!("the authorization server of a case: {file}"));
    let extension = ExtensionName { namespace: namespace.into(), name: name.into() };
    let server = serde_json::from_str(&file.to_string()).map_err(|error| error.to_string());
    let settings = server.and_then(|server| of_operator(&server));
    let settings = settings.unwrap_or_else(|why| panic!("the authorization server of a case: {why}"));
    GlobalAuthorization { extension, settings }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Foreign {
    #[default]
    Warn,
    Refuse,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Lua {
    #[default]
    Refuse,
    Ignore,
    Run,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Log {
    #[default]
    Envoy,
    /// The default fields.
    Json,
    /// These fields.
    #[serde(untagged)]
    Fields(Vec<Arc<str>>),
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Level {
    #[default]
    Info,
    Error,
    Critical,
    Disabled,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ReplyBody {
    #[default]
    Code,
    Empty,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Codec {
    #[default]
    Gzip,
    Brotli,
    Zstd,
    Disabled,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Underscores {
    #[default]
    Allow,
    Reject,
    Drop,
}

impl Settings {
    pub fn read(document: &str) -> Result<Settings, String> {
        let head: Head = serde_saphyr::from_str(document).map_err(|error| format!("settings: {error}"))?;
        Ok(head.settings)
    }

    /// As the command line and the configuration file of `sesame serve` take them; the error is a setting that it does not
    /// have.
    pub fn serve(&self) -> Result<Serve, &'static str> {
        if self.self_signed {
            return Err("certificates of our own are for folders");
        }
        if self.listed_endpoints {
            return Err("endpoints in annotations are for folders");
        }
        if self.https_port.is_some() {
            return Err("the port that clients know is for folders");
        }
        let mut flags = Vec::new();
        if !self.ingress_class_names.is_empty() {
            flags.push(("ingress-class-name".to_owned(), self.ingress_class_names.join(",")));
        }
        if !self.root_namespaces.is_empty() {
            flags.push(("root-namespaces".to_owned(), self.root_namespaces.join(",")));
        }
        if self.foreign_protection == Foreign::Refuse {
            flags.push(("foreign-protection".to_owned(), "refuse".to_owned()));
        }
        for (flag, is_set) in [
            ("emissary-cross-namespace", self.emissary_cross_namespace),
            ("emissary-ingress-class", self.emissary_ingress_class),
        ] {
            flags.extend(is_set.then(|| (flag.to_owned(), String::new())));
        }
        let word = match self.emissary_lua {
            Lua::Refuse => None,
            Lua::Ignore => Some("ignore"),
            Lua::Run => Some("run"),
        };
        flags.extend(word.map(|word| ("emissary-lua".to_owned(), word.to_owned())));
        let mut file = serde_json::Map::new();
        if self.disable_permit_insecure {
            file.insert("disablePermitInsecure".to_owned(), true.into());
        }
        if self.external_names {
            file.insert("enableExternalNameService".to_owned(), true.into());
        }
        if self.cross_namespace_extension_services {
            file.insert("enableCrossNamespaceExtensionServices".to_owned(), true.into());
        }
        let mut tls = serde_json::Map::new();
        for (key, id) in [
            ("fallback-certificate", &self.fallback_certificate),
            ("envoy-client-certificate", &self.client_certificate),
        ] {
            if let Some((namespace, name)) = id.as_ref().and_then(|id| id.split_once('/')) {
                tls.insert(key.to_owned(), json!({ "namespace": namespace, "name": name }));
            }
        }
        if let Some(version) = &self.minimum_protocol_version {
            tls.insert("minimum-protocol-version".to_owned(), version.as_str().into());
        }
        if !tls.is_empty() {
            file.insert("tls".to_owned(), tls.into());
        }
        if let Some(service) = &self.rate_limit_service {
            file.insert("rateLimitService".to_owned(), service.file());
        }
        if let Some(tracing) = &self.tracing {
            file.insert("tracing".to_owned(), tracing.file());
        }
        if let Some(server) = &self.global_ext_auth {
            file.insert("globalExtAuth".to_owned(), server.clone());
        }
        match &self.access_log {
            Log::Envoy => {}
            Log::Json => _ = file.insert("accesslog-format".to_owned(), "json".into()),
            Log::Fields(fields) => {
                file.insert("accesslog-format".to_owned(), "json".into());
                file.insert("json-fields".to_owned(), json!(fields));
            }
        }
        let word = match self.access_log_level {
            Level::Info => None,
            Level::Error => Some("error"),
            Level::Critical => Some("critical"),
            Level::Disabled => Some("disabled"),
        };
        file.extend(word.map(|word| ("accesslog-level".to_owned(), word.into())));
        if matches!(self.local_reply_body, ReplyBody::Empty) {
            file.insert("listener".to_owned(), json!({ "local-reply-body": "empty" }));
        }
        let word = match self.compression {
            Codec::Gzip => None,
            Codec::Brotli => Some("brotli"),
            Codec::Zstd => Some("zstd"),
            Codec::Disabled => Some("disabled"),
        };
        file.extend(word.map(|word| ("compression".to_owned(), json!({ "algorithm": word }))));
        let word = match self.headers_with_underscores {
            Underscores::Allow => None,
            Underscores::Reject => Some("reject"),
            Underscores::Drop => Some("drop"),
        };
        file.extend(word.map(|word| ("headersWithUnderscores".to_owned(), word.into())));
        Ok(Serve { flags, file: serde_json::Value::Object(file).to_string() })
    }

    /// As the pipeline takes them.
    ///
    /// # Panics
    /// When one of them cannot be used.
    pub fn pipeline(&self) -> pipeline::Settings {
        let mut settings = pipeline::Settings::default();
        settings.ingress.class_names = self.ingress_class_names.iter().map(|name| name.as_str().into()).collect();
        settings.http_proxy.class_names.clone_from(&settings.ingress.class_names);
        settings.http_proxy.root_namespaces = self.root_namespaces.iter().map(|name| name.as_str().into()).collect();
        settings.http_proxy.https_port = self.https_port;
        settings.http_proxy.self_signed = self.self_signed;
        settings.http_proxy.disable_permit_insecure = self.disable_permit_insecure;
        settings.emissary.cross_namespace = self.emissary_cross_namespace;
        settings.emissary.scripts = match self.emissary_lua {
            Lua::Refuse => Scripts::Refuse,
            Lua::Ignore => Scripts::Ignore,
            Lua::Run => Scripts::Run,
        };
        settings.ingress.emissary_class = self.emissary_ingress_class;
        let secret = |id: &Option<String>| {
            let (namespace, name) = id.as_deref()?.split_once('/')?;
            Some(ObjectRef::new(kinds::kind::SECRET, namespace, name))
        };
        settings.http_proxy.fallback_certificate = secret(&self.fallback_certificate);
        settings.http_proxy.client_certificate = secret(&self.client_certificate);
        settings.ingress.client_certificate = secret(&self.client_certificate);
        if let Some(text) = &self.minimum_protocol_version {
            let version =
                TlsVersion::parse(text).unwrap_or_else(|| panic!("the minimum TLS version of a case: {text}"));
            settings.ingress.tls.lowest = version;
            settings.http_proxy.tls.lowest = version;
            settings.gateway.tls.lowest = version;
            settings.emissary.tls.lowest = version;
        }
        if self.foreign_protection == Foreign::Refuse {
            settings.ingress.foreign_protection = pipeline::settings::ForeignProtection::Refuse;
            settings.http_proxy.foreign_protection = pipeline::settings::ForeignProtection::Refuse;
            settings.gateway.foreign_protection = pipeline::settings::ForeignProtection::Refuse;
            settings.emissary.foreign_protection = pipeline::settings::ForeignProtection::Refuse;
        }
        if let Some(service) = &self.rate_limit_service {
            assert!(service.set(&mut settings).is_some(), "the rate limit service of a case: {service:?}");
        }
        if let Some(tracing) = &self.tracing {
            assert!(tracing.set(&mut settings).is_some(), "the tracing of a case: {tracing:?}");
        }
        settings.authorization = self.global_ext_auth.as_ref().map(global_authorization);
        settings.ingress.https_port = self.https_port;
        settings.ingress.self_signed = self.self_signed;
        settings.resolve.external_names = self.external_names;
        settings.resolve.listed_endpoints = self.listed_endpoints;
        settings.http_proxy.open_extensions.all = self.cross_namespace_extension_services;
        for http in [&mut settings.http_settings, &mut settings.https_settings] {
            http.access_log.format = match &self.access_log {
                Log::Envoy => AccessLogFormat::Envoy,
                Log::Json => AccessLogFormat::Json(Vec::new()),
                Log::Fields(fields) => AccessLogFormat::Json(fields.clone()),
            };
            http.access_log.level = match self.access_log_level {
                Level::Info => AccessLogLevel::Info,
                Level::Error => AccessLogLevel::Error,
                Level::Critical => AccessLogLevel::Critical,
                Level::Disabled => AccessLogLevel::Disabled,
            };
            http.local_reply_body = match self.local_reply_body {
                ReplyBody::Code => LocalReplyBody::Code,
                ReplyBody::Empty => LocalReplyBody::Empty,
            };
            http.compression = match self.compression {
                Codec::Gzip => Compression::Gzip,
                Codec::Brotli => Compression::Brotli,
                Codec::Zstd => Compression::Zstd,
                Codec::Disabled => Compression::Off,
            };
            http.underscores = match self.headers_with_underscores {
                Underscores::Allow => HeadersWithUnderscores::Allow,
                Underscores::Reject => HeadersWithUnderscores::Reject,
                Underscores::Drop => HeadersWithUnderscores::Drop,
            };
        }
        settings
    }
}
