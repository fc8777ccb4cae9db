//! What is to be served and how: the command line over the configuration file, as the parts of Sesame take it.
//!
//! In: [`Args`], [`Config`], the environment. Out: a [`Plan`], or what contradicts itself. Nothing is looked up and
//! nothing is opened here, so a test can ask what any command line means.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use certgen::rotation::Policy;
use kinds::{ExtensionService, Kind, ObjectRef, Typed, kind};
use model::Code;
use model::listener::AccessLog;
use pipeline::{Dialects, settings::Bind};
use resolve::reserved::is_reserved;
use source::cluster::{Access, Options, Rate, Selectors};
use status::{Addresses, lease};
use xds::TlsFiles;

use super::certificates::Issuing;
use super::config::status::status_of;
use super::config::{Config, TlsPaths, XdsTls};
use crate::cmd::serve::{Args, Feature, LogFormat};
use crate::flags::{self, NamespacedNames};
use crate::problem::{Coded, Problem};
use crate::trace::Endpoint;

/// What client-go has where only one of the two limits is set.
const RATE: Rate = Rate { per_second: 5.0, burst: 10 };

/// What is to be served and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How the API server is reached.
    pub access: Access,
    /// What is read from it.
    pub source: Options,
    /// What proxies are told.
    pub pipeline: pipeline::Settings,
    /// The address of the xDS server.
    pub xds: SocketAddr,
    /// The TLS files of the xDS server; none for no TLS at all.
    pub security: Option<TlsFiles>,
    /// How the certificates of xDS connections are issued; none if somebody else makes the files.
    pub issuing: Option<Issuing>,
    /// The address of `/healthz` and `/readyz`.
    pub health: SocketAddr,
    /// The address of `/metrics`.
    pub metrics: SocketAddr,
    /// The TLS files of `/metrics`; none for no TLS.
    pub metrics_tls: Option<tls::PemFiles>,
    /// The address of `/debug`.
    pub debug: SocketAddr,
    /// The lease that decides who writes; none if this replica always does.
    pub lease: Option<lease::Settings>,
    /// What is written on objects.
    pub status: status::Settings,
    /// The proxies of Gateways; none if the shared fleet serves them.
    pub fleets: Option<provision::Settings>,
    /// How many bytes all resources of one type may have together; as the server has it if not given.
    pub table_bytes: Option<usize>,
    /// Whether every table is compared with a build from nothing.
    pub self_check: bool,
    /// Whether metrics have Contour's names beside our own.
    pub contour_metric_names: bool,
    /// Where traces of batches are sent.
    pub otlp_traces: Option<Endpoint>,
    /// Whether the file wants everything logged down to debug.
    pub verbose: bool,
    /// What was asked for and will not be.
    pub warnings: Vec<(Code, String)>,
    /// What a running process does not change, as it was written: by key.
    pub at_start: BTreeMap<&'static str, String>,
}

impl Plan {
    /// Combines the command line, the configuration file and the environment. Flags override the file.
    pub fn new(args: &Args, config: Config, env: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let replica = ["POD_NAME", "HOSTNAME"].iter().find_map(|name| env(name).filter(|value| !value.is_empty()));
        let replica = replica.unwrap_or_else(|| "sesame".to_owned());
        let mut warnings = config.warnings.clone();
        warnings.extend(ineffective(args));
        let addresses = addresses(args, &config);
        warnings.extend(unread(args, &config, &addresses));
        roots_are_read(args, &config.root_namespaces)?;
        client_certificate_is_usable(args, &config)?;
        let metrics = over(config.metrics, args.http_address, args.http_port);
        let health = over(config.health, args.health_address, args.health_port);
        let debug = over(config.debug_pages, args.debug_http_address, args.debug_http_port);
        let xds = over(config.xds, args.xds_address, args.xds_port);
        let metrics_tls = metrics_tls(&config, metrics == health)?;
        let (access, verbose) = (access(args, &config), config.debug);
        let issuing = issuing(args)?;
        let security = match &issuing {
            Some(issuing) => Some(issuing.files()),
            None => security(args, &config.xds_tls)?,
        };
        let at_start = config.at_start.clone();
        let mut pipeline = pipeline(args, config)?;
        let fleets = (!args.disable_fleets && !args.namespaced_only).then(|| fleets(args, xds.port, security.as_ref()));
        pipeline.gateway.own_fleets = fleets.is_some();
        warnings.extend(
            pipeline
                .runtime
                .overridden()
                .map(|key| (Code::SettingNoEffect, format!("runtime-settings: {key} has no effect: Sesame sets it"))),
        );
        pipeline.check_binds().coded(Code::CommandLine, || "the listeners of Envoy cannot share a port".to_owned())?;
        Ok(Self {
            access,
            source: Options {
                kinds: Dialects::all().kinds().into_iter().filter(|kind| !is_disabled(args, *kind)).collect(),
                namespaces: watched(args).map(Into::into).collect(),
                named: named_secrets(args),
                selectors: selectors(args),
                ..Options::default()
            },
            xds: socket(xds),
            security,
            issuing,
            fleets,
            health: socket(health),
            metrics: socket(metrics),
            metrics_tls,
            debug: socket(debug),
            lease: if args.disable_leader_election { None } else { Some(lease(args, xds, &replica, env("POD_IP"))?) },
            status: status::Settings {
                manager: manager(&args.namespace),
                controller: pipeline.gateway.controller.to_string(),
                ..status::Settings::new(&replica, addresses, status_of)
            },
            table_bytes: args.table_bytes,
            self_check: args.self_check,
            contour_metric_names: args.contour_metric_names,
            otlp_traces: args.otlp_traces.clone(),
            verbose,
            pipeline,
            warnings,
            at_start,
        })
    }
}

/// How the API server is reached.
pub fn access(args: &Args, config: &Config) -> Access {
    let (queries, burst) =
        (args.kubernetes_client_qps.or(config.queries), args.kubernetes_client_burst.or(config.burst));
    let rate = match (queries, burst) {
        (None, None) => None,
        // As client-go has it: below zero is no limit, zero is as if nothing was said.
        (Some(queries), _) if queries < 0.0 => None,
        (queries, burst) => {
            let per_second = queries.filter(|&queries| queries > 0.0).unwrap_or(RATE.per_second);
            let burst = burst.unwrap_or(RATE.burst).max(per_second.ceil() as u32);
            Some(Rate { per_second, burst })
        }
    };
    // A kubeconfig on the command line overrides `incluster` of the configuration file.
    let in_cluster = args.incluster || (config.in_cluster && args.kubeconfig.is_none());
    let kubeconfig = args.kubeconfig.clone().or_else(|| config.kubeconfig.clone());
    Access { in_cluster, kubeconfig, context: None, rate }
}

/// An address and a port, with what flags say over them.
fn over(bind: Bind, address: Option<IpAddr>, port: Option<u16>) -> Bind {
    Bind { address: address.unwrap_or(bind.address), port: port.unwrap_or(bind.port) }
}

fn socket(bind: Bind) -> SocketAddr {
    SocketAddr::new(bind.address, bind.port)
}

/// How certificates are issued, where the operator says where their files go.
fn issuing(args: &Args) -> Result<Option<Issuing>> {
    let Some(dir) = args.xds_certificates_dir.clone() else { return Ok(None) };
    let days = |days: u32| Duration::from_secs(24 * 3600) * days;
    let policy = Policy {
        ca_lifetime: days(args.xds_ca_lifetime),
        lifetime: days(args.xds_certificate_lifetime),
        settle: args.xds_certificate_settle_time,
        ..Policy::default()
    };
    let refused = |why: &str| Err(Problem::of(Code::CommandLine, why.to_owned()));
    if policy.ca_lifetime < 3 * policy.lifetime {
        return refused("--xds-ca-lifetime must be at least three times --xds-certificate-lifetime");
    }
    if policy.lifetime < 12 * policy.settle {
        return refused("--xds-certificate-lifetime must be at least twelve times --xds-certificate-settle-time");
    }
    Ok(Some(Issuing { dir, policy }))
}

/// All three files, or the word that there are to be none.
fn security(args: &Args, config: &XdsTls) -> Result<Option<TlsFiles>> {
    let given = [&args.sesame_cafile, &args.sesame_cert_file, &args.sesame_key_file];
    if args.insecure || config.insecure && given.iter().all(|file| file.is_none()) {
        return Ok(None);
    }
    let [ca, certificate, key] = given;
    let file = |flag: &Option<PathBuf>, field: &Option<PathBuf>| flag.clone().or_else(|| field.clone());
    match (file(ca, &config.ca), file(certificate, &config.certificate), file(key, &config.key)) {
        (Some(ca), Some(certificate), Some(key)) => Ok(Some(TlsFiles { ca, certificate, key })),
        _ => Err(Problem::of(
            Code::CommandLine,
            "--sesame-cafile, --sesame-cert-file and --sesame-key-file are all needed, or --insecure for development",
        )),
    }
}

/// The files for metrics over TLS, which probes of health could not read.
fn metrics_tls(config: &Config, is_shared: bool) -> Result<Option<tls::PemFiles>> {
    let TlsPaths { certificate, key, ca } = config.metrics_tls.clone();
    let files = certificate.zip(key).map(|(certificate, key)| tls::PemFiles { certificate, key, ca });
    if files.is_some() && is_shared {
        let why = "metrics over TLS cannot share the address of health; set another port with metrics.contour.port";
        return Err(Problem::of(Code::ConfigValue, why));
    }
    Ok(files)
}

/// What holds for the proxies of Gateways.
fn fleets(args: &Args, xds_port: u16, security: Option<&TlsFiles>) -> provision::Settings {
    let host = args.fleet_xds_address.clone().unwrap_or_else(|| format!("sesame.{}.svc", args.namespace));
    provision::Settings {
        envoy_image: args.envoy_image.clone(),
        sesame_image: args.sesame_image.clone(),
        xds: provision::XdsAddress { host, port: xds_port, ca: security.map(|files| files.ca.clone()) },
        namespace: args.namespace.clone(),
        namespaces: watched(args).map(Into::into).collect(),
        manager: manager(&args.namespace),
        replicas: args.fleet_replicas,
    }
}

fn lease(args: &Args, xds: Bind, replica: &str, pod: Option<String>) -> Result<lease::Settings> {
    // Where the others find us: the address of the pod, unless we listen on one of our own.
    let address = pod.filter(|_| xds.address.is_unspecified()).and_then(|pod| pod.parse().ok());
    let address = address.or(Some(xds.address).filter(|address| !address.is_unspecified()));
    let namespace = args.leader_election_resource_namespace.as_ref().unwrap_or(&args.namespace);
    let settings = lease::Settings {
        name: args.leader_election_resource_name.clone(),
        address: address.map(|address| SocketAddr::new(address, xds.port).to_string()),
        lease_duration: args.leader_election_lease_duration,
        renew_deadline: args.leader_election_renew_deadline,
        retry_period: args.leader_election_retry_period,
        ..lease::Settings::new(namespace, replica)
    };
    settings
        .check()
        .coded(Code::CommandLine, || "the durations of --leader-election-* are not consistent".to_owned())?;
    Ok(settings)
}

/// The name under which the API server keeps what we say: another for every installation in a cluster.
fn manager(namespace: &str) -> String {
    if namespace == flags::NAMESPACE { "sesame".to_owned() } else { format!("sesame-{namespace}") }
}

/// What the API server is asked to leave out, of the kinds that Emissary reads.
fn selectors(args: &Args) -> Selectors {
    let given = |selector: &Option<String>| selector.as_deref().filter(|text| !text.trim().is_empty()).map(Into::into);
    let is_selected = |kind: &Kind| {
        kind.group() == kinds::emissary::GROUP || [kind::SERVICE, kind::INGRESS, kind::INGRESS_CLASS].contains(kind)
    };
    Selectors {
        kinds: kind::ALL.iter().copied().filter(is_selected).collect(),
        labels: given(&args.ambassador_label_selector),
        fields: given(&args.ambassador_field_selector),
    }
}

fn addresses(args: &Args, config: &Config) -> Addresses {
    let fixed = args.ingress_status_address.as_ref().or(config.addresses.as_ref());
    fixed.cloned().unwrap_or_else(|| {
        let namespace = args.envoy_service_namespace.as_ref().or(config.envoy_service_namespace.as_ref());
        let name = args.envoy_service_name.as_ref().unwrap_or(&config.envoy_service_name);
        Addresses::of_service(namespace.unwrap_or(&args.namespace), name)
    })
}

/// Settings of proxies: those of the configuration, overridden by flags.
fn pipeline(args: &Args, config: Config) -> Result<pipeline::Settings> {
    let json = args.accesslog_format.map_or(config.json_log, |format| format == LogFormat::Json);
    let stats = over(config.pipeline.stats, args.stats_address, args.stats_port);
    let (class_names, root_namespaces) = (config.class_names.clone(), config.root_namespaces.clone());
    let mut settings = config.settings(stats, json);
    if settings.metrics_tls.is_some() && settings.metrics.is_none() {
        let why = "Envoy's metrics over TLS cannot share the port of readiness; set another with metrics.envoy.port";
        return Err(Problem::of(Code::ConfigValue, why));
    }
    settings.http = over(settings.http, args.envoy_service_http_address, args.envoy_service_http_port);
    settings.https = over(settings.https, args.envoy_service_https_address, args.envoy_service_https_port);
    settings.gateway.address = settings.http.address;
    if let Some(controller) = &args.gateway_controller_name {
        settings.gateway.controller = controller.as_str().into();
    }
    let log = |log: &mut AccessLog, path: Option<&String>| {
        if let Some(path) = path {
            log.path = path.as_str().into();
        }
    };
    log(&mut settings.http_settings.access_log, args.envoy_http_access_log.as_ref());
    log(&mut settings.https_settings.access_log, args.envoy_https_access_log.as_ref());
    for http in [&mut settings.http_settings, &mut settings.https_settings] {
        http.proxy_protocol |= args.use_proxy_protocol;
    }
    settings.spoil = args.spoil.as_deref().map(Into::into);
    settings.packing = args.packing.into();
    settings.certificates = args.certificates.into();
    settings.emissary.ambassador_id = flags::ambassador_id(&args.ambassador_id);
    settings.resolve.namespace = args.namespace.as_str().into();
    settings.emissary.address = settings.http.address;
    args.emissary.apply(&mut settings);
    settings.ingress.foreign_protection = args.foreign_protection.into();
    settings.http_proxy.foreign_protection = args.foreign_protection.into();
    settings.gateway.foreign_protection = args.foreign_protection.into();
    settings.gateway.disabled = Dialects::all().kinds().into_iter().filter(|kind| is_disabled(args, *kind)).collect();
    settings.emissary.foreign_protection = args.foreign_protection.into();
    let names = |flag: &[Box<str>], configured| if flag.is_empty() { configured } else { flag.to_vec() };
    settings.ingress.class_names = names(&args.ingress_class_name, class_names);
    settings.http_proxy.class_names.clone_from(&settings.ingress.class_names);
    settings.http_proxy.open_extensions.namespace = Some(args.namespace.as_str().into());
    settings.http_proxy.root_namespaces = names(&args.root_namespaces, root_namespaces);
    Ok(settings)
}

/// The Secrets that are read by name, if not all of them may be listed.
fn named_secrets(args: &Args) -> BTreeMap<Kind, BTreeSet<ObjectRef>> {
    let objects = |names: &NamespacedNames| {
        names.iter().map(|(namespace, name)| ObjectRef::new(kind::SECRET, &**namespace, &**name)).collect()
    };
    args.named_secrets.iter().map(|names| (kind::SECRET, objects(names))).collect()
}

/// Whether the operator wants objects of a kind to be ignored. Without kinds of the cluster there is no GatewayClass, and
/// without one no Gateway.
fn is_disabled(args: &Args, kind: Kind) -> bool {
    if args.namespaced_only && (!kind.is_namespaced() || kind.group() == kind::GATEWAY.group()) {
        return true;
    }
    let of = |feature: &Feature| match feature {
        Feature::ExtensionServices => ExtensionService::KINDS,
        Feature::TlsRoutes => &[kind::TLS_ROUTE],
        Feature::GrpcRoutes => &[kind::GRPC_ROUTE],
        Feature::TcpRoutes => &[kind::TCP_ROUTE],
        Feature::BackendTlsPolicies => &[kind::BACKEND_TLS_POLICY],
    };
    args.disable_feature.iter().any(|feature| of(feature).contains(&kind))
}

/// Flags that are taken for the sake of habit.
fn ineffective(args: &Args) -> Vec<(Code, String)> {
    let mut warnings = Vec::new();
    if args.kubernetes_debug.is_some_and(|level| level > 0) {
        let why = "--kubernetes-debug has no effect: --log info,kube_client=debug says what is asked of the API server";
        warnings.push((Code::SettingNoEffect, why.to_owned()));
    }
    warnings
}

/// What would be looked for where nothing is read.
fn unread(args: &Args, config: &Config, addresses: &Addresses) -> Vec<(Code, String)> {
    let is_read = |namespace: &str| watched(args).next().is_none() || watched(args).any(|watched| watched == namespace);
    let mut warnings = Vec::new();
    if let Addresses::Service(service) = addresses
        && !is_read(&service.namespace)
    {
        warnings.push(format!(
            "Service {}/{} has the addresses of Ingresses, and its namespace is not read: they get none",
            service.namespace, service.name
        ));
    }
    if let (Some(namespace), Some(name)) = &config.fallback
        && !is_read(namespace)
    {
        warnings.push(format!("Secret {namespace}/{name} has the fallback certificate, and its namespace is not read"));
    }
    if let (Some(namespace), Some(name)) = &config.client_certificate
        && !is_read(namespace)
    {
        warnings.push(format!(
            "Secret {namespace}/{name} has the client certificate for TLS backends, and its namespace is not read"
        ));
    }
    warnings.into_iter().map(|why| (Code::NamespaceNotWatched, why)).collect()
}

/// The namespaces that are read; none for all.
fn watched(args: &Args) -> impl Iterator<Item = &str> {
    let named = || args.watch_namespaces.iter().map(|name| &**name).filter(|name| !name.is_empty());
    let own = (args.ambassador_single_namespace && named().next().is_none()).then_some(&*args.namespace);
    named().chain(own)
}

/// Every TLS backend is presented the client certificate, so it must not be one that opens xDS connections.
fn client_certificate_is_usable(args: &Args, config: &Config) -> Result<()> {
    let (Some(namespace), Some(name)) = &config.client_certificate else { return Ok(()) };
    match is_reserved(&ObjectRef::new(kind::SECRET, namespace.as_str(), name.as_str()), &args.namespace) {
        false => Ok(()),
        true => Err(Problem::of(
            Code::ConfigValue,
            format!(
                "tls.envoy-client-certificate: Secret {namespace}/{name} is for xDS connections; every TLS backend is presented this \
                 certificate, so use another one"
            ),
        )),
    }
}

/// A root namespace that is not read could have no roots.
fn roots_are_read(args: &Args, configured: &[Box<str>]) -> Result<()> {
    let roots = if args.root_namespaces.is_empty() { configured } else { &args.root_namespaces };
    let is_read = |root: &str| root.is_empty() || watched(args).any(|watched| watched == root);
    match roots.iter().find(|root| watched(args).next().is_some() && !is_read(root)) {
        None => Ok(()),
        Some(root) => Err(Problem::of(
            Code::CommandLine,
            format!("--root-namespaces has {root}, and --watch-namespaces does not: it would have no roots"),
        )),
    }
}
