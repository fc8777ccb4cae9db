//! Every flag and every key, and what it does to the plan.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use clap::{CommandFactory, FromArgMatches, Parser};
use envoy::bootstrap::DnsFamily;
use model::listener::{
    AccessLogFormat, AccessLogLevel, Compression, HeadersWithUnderscores, HttpVersions, LocalReplyBody, ServerHeader,
};
use model::tls::TlsVersion;
use model::{ObjectRef, Timeout};
use pipeline::settings::{Packing, Scripts};
use std::path::Path;
use std::time::Duration;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn args(line: &[&str]) -> Args {
    let command = flags::with_contour_names(Line::command(), |_| false);
    let line = ["serve"].iter().chain(line);
    Line::from_arg_matches(&command.try_get_matches_from(line).unwrap()).unwrap().args
}

/// The plan of a command line and a file, for a pod.
fn attempt(line: &[&str], file: &str) -> Result<Plan> {
    let config = Config::parse(Path::new("sesame.yaml"), file).unwrap();
    Plan::new(&args(line), config, |name| (name == "POD_NAME").then(|| "sesame-0".to_owned()))
}

fn plan(line: &[&str], file: &str) -> Plan {
    let line: Vec<&str> = ["--insecure"].iter().chain(line).copied().collect();
    attempt(&line, file).unwrap()
}

fn refusal(line: &[&str]) -> String {
    attempt(line, "").map(drop).unwrap_err().to_string()
}

type Check = fn(&Plan) -> bool;

/// Whether something holds for both listeners.
macro_rules! both {
    (|$http:ident| $holds:expr) => {
        |p| [&p.pipeline.http_settings, &p.pipeline.https_settings].iter().all(|$http| $holds)
    };
}

/// Whether something holds for the fleets of Gateways.
macro_rules! of_fleets {
    (|$fleets:ident| $holds:expr) => {
        |p| p.fleets.as_ref().is_some_and(|$fleets| $holds)
    };
}

mod keys;
mod poison;
mod tracing;

fn after(seconds: u64) -> Timeout {
    Timeout::After(Duration::from_secs(seconds))
}

/// The plan of a ContourConfiguration with these fields, in YAML.
fn plan_of_object(line: &[&str], spec: &str) -> Result<Plan> {
    let spec: serde_json::Value = serde_saphyr::from_str(spec).unwrap();
    let config = Config::of_object(&spec).unwrap_or_else(|problems| panic!("{problems:?}"));
    Plan::new(&args(line), config, |_| None)
}

#[test]
fn the_object_has_defaults_of_its_own_and_flags_stand_above_it() {
    let plan = plan_of_object(&[], "{}").unwrap();
    assert_eq!(plan.xds.to_string(), "0.0.0.0:8001");
    assert_eq!(plan.security.unwrap().certificate, Path::new("/certs/tls.crt"));
    assert_eq!(plan.pipeline.http_settings.connection_idle, Timeout::Default, "Envoy's, not that of the file");
    let line = ["--xds-port=9", "--sesame-key-file=/k", "--envoy-service-http-port=81", "--root-namespaces=b"];
    let spec = "{xdsServer: {port: 8}, envoy: {http: {port: 80}}, httpproxy: {rootNamespaces: [a]}}";
    let plan = plan_of_object(&line, spec).unwrap();
    assert_eq!((plan.xds.port(), plan.pipeline.http.port), (9, 81));
    assert_eq!(plan.security.unwrap().key, Path::new("/k"));
    assert_eq!(plan.pipeline.http_proxy.root_namespaces, ["b".into()]);
    let both = flags::with_contour_names(Line::command(), |_| false);
    assert!(both.try_get_matches_from(["serve", "-c", "x", "--contour-config-name", "y"]).is_err());
}

#[test]
fn the_rate_limit_service_is_the_same_in_a_file_and_in_an_object() {
    let more = "domain: shop, failOpen: true, enableXRateLimitHeaders: true, enableResourceExhaustedCode: true, \
                addNamespace: true, defaultGlobalRateLimitPolicy: {descriptors: [{entries: [{remoteAddress: {}}]}]}";
    let file = plan(&[], &format!("rateLimitService: {{extensionService: edge/limits, {more}}}")).pipeline;
    let reference = "{namespace: edge, name: limits}";
    let object = plan_of_object(&[], &format!("rateLimitService: {{extensionService: {reference}, {more}}}"));
    let object = object.unwrap().pipeline;
    assert_eq!(file.rate_limit_service, object.rate_limit_service);
    assert_eq!(file.http_proxy.global_rate_limits, object.http_proxy.global_rate_limits);
    let (_, service) = file.rate_limit_service.unwrap();
    assert_eq!((&*service.domain, service.fail_open), ("shop", true));
    assert!(service.response_headers && service.resource_exhausted);
    let limits = file.http_proxy.global_rate_limits.unwrap();
    assert!(limits.add_namespace && limits.default.is_some());
}

#[test]
fn metrics_over_tls_need_files_and_a_port_of_their_own() {
    let of = |name: &str, port: &str| {
        let files = "server-certificate-path: /c, server-key-path: /k, ca-certificate-path: /ca";
        format!("metrics: {{{name}: {{{port}{files}}}}}")
    };
    let files = plan(&[], &of("contour", "port: 9000, ")).metrics_tls.unwrap();
    assert_eq!((files.certificate.to_str(), files.ca.is_some()), (Some("/c"), true));
    let shared = attempt(&["--insecure"], &of("contour", "")).map(drop).unwrap_err().to_string();
    assert!(shared.contains("metrics.contour.port"), "{shared}");
    let tls = plan(&[], &of("envoy", "port: 9003, ")).pipeline.metrics_tls.unwrap();
    assert_eq!((&*tls.certificate, &*tls.key, tls.ca.as_deref()), ("/c", "/k", Some("/ca")));
    let shared = attempt(&["--insecure"], &of("envoy", "")).map(drop).unwrap_err().to_string();
    assert!(shared.contains("metrics.envoy.port"), "{shared}");
    let metrics = plan(&[], "metrics: {envoy: {address: 127.0.0.1, port: 9003}}").pipeline.metrics;
    assert_eq!(metrics.unwrap().to_string(), "127.0.0.1:9003");
    let overload = plan(&[], "omEnforcedHealthListener: {address: 127.0.0.1, port: 9004}").pipeline.overload_health;
    assert_eq!(overload.unwrap().to_string(), "127.0.0.1:9004");
    let own = plan(&[], "runtime-settings: {re2.max_program_size.error_level: '1'}");
    assert_eq!(own.warnings[0].0, Code::SettingNoEffect);
}

/// Every flag: how it is written, and what it does.
const FLAGS: &[(&[&str], Check)] = &[
    (&["--namespace=edge"], |p| {
        p.status.addresses == Addresses::of_service("edge", "envoy")
            && p.lease.as_ref().unwrap().namespace == "edge"
            && p.status.manager == "sesame-edge"
    }),
    (&["--incluster"], |p| p.access.in_cluster),
    (&["--kubeconfig=/k"], |p| p.access.kubeconfig.as_deref() == Some(Path::new("/k"))),
    (&["--kubernetes-client-qps=50"], |p| p.access.rate == Some(Rate { per_second: 50.0, burst: 50 })),
    (&["--kubernetes-client-burst=3"], |p| p.access.rate == Some(Rate { per_second: 5.0, burst: 5 })),
    (&["--kubernetes-debug=8"], |p| p.warnings[0].0 == Code::SettingNoEffect),
    (&["--watch-namespaces=projectsesame,shop"], |p| {
        p.source.namespaces == ["projectsesame".into(), "shop".into()] && p.warnings.is_empty()
    }),
    (&["--namespaced-only", "--watch-namespaces=projectsesame"], |p| {
        let is_narrow = |kind: &Kind| kind.is_namespaced() && kind.group() != kind::GATEWAY.group();
        p.source.kinds.contains(&kind::INGRESS) && p.source.kinds.iter().all(is_narrow) && p.fleets.is_none()
    }),
    (&["--named-secrets=shop/one, shop/two"], |p| {
        let named = p.source.named.get(&kind::SECRET).into_iter().flatten();
        named.map(|it| format!("{}/{}", it.namespace, it.name)).collect::<Vec<_>>() == ["shop/one", "shop/two"]
    }),
    (&["--xds-address=0.0.0.0"], |p| p.xds == "0.0.0.0:8001".parse().unwrap()),
    (&["--xds-port=9"], |p| p.xds == "127.0.0.1:9".parse().unwrap()),
    (&["--health-address=127.0.0.1"], |p| p.health == "127.0.0.1:8000".parse().unwrap()),
    (&["--health-port=9"], |p| p.health == "0.0.0.0:9".parse().unwrap()),
    (&["--http-address=127.0.0.1"], |p| p.metrics == "127.0.0.1:8000".parse().unwrap()),
    (&["--http-port=9"], |p| p.metrics == "0.0.0.0:9".parse().unwrap()),
    (&["--debug-http-address=::1"], |p| p.debug == "[::1]:6060".parse().unwrap()),
    (&["--debug-http-port=9"], |p| p.debug == "127.0.0.1:9".parse().unwrap()),
    (&["--disable-leader-election"], |p| p.lease.is_none()),
    (&["--leader-election-lease-duration=1m"], |p| p.lease.as_ref().unwrap().lease_duration == Duration::from_secs(60)),
    (&["--leader-election-renew-deadline=9s"], |p| p.lease.as_ref().unwrap().renew_deadline == Duration::from_secs(9)),
    (&["--leader-election-retry-period=3s"], |p| p.lease.as_ref().unwrap().retry_period == Duration::from_secs(3)),
    (&["--leader-election-resource-name=a"], |p| p.lease.as_ref().unwrap().name == "a"),
    (&["--leader-election-resource-namespace=b"], |p| p.lease.as_ref().unwrap().namespace == "b"),
    (&["--ingress-class-name=a,b"], |p| {
        p.pipeline.ingress.class_names.len() == 2 && p.pipeline.http_proxy.class_names.len() == 2
    }),
    (
        &["--ingress-status-address=10.0.0.1"],
        |p| matches!(&p.status.addresses, Addresses::Fixed(one) if one.len() == 1),
    ),
    (&["--gateway-controller-name=example.com/gateways"], |p| {
        &*p.pipeline.gateway.controller == "example.com/gateways" && p.status.controller == "example.com/gateways"
    }),
    (&["--ambassador-id=blue"], |p| *p.pipeline.emissary.ambassador_id == *"blue"),
    (&["--ambassador-single-namespace"], |p| p.source.namespaces == ["projectsesame".into()]),
    (&["--ambassador-label-selector=team=a"], |p| {
        let selectors = &p.source.selectors;
        selectors.labels.as_deref() == Some("team=a") && selectors.kinds.contains(&kind::MAPPING)
    }),
    (&["--ambassador-field-selector=metadata.name!=a"], |p| {
        p.source.selectors.fields.as_deref() == Some("metadata.name!=a")
    }),
    (&["--namespace=edge"], |p| *p.pipeline.resolve.namespace == *"edge"),
    (&["--emissary-cross-namespace"], |p| p.pipeline.emissary.cross_namespace),
    (&["--emissary-lua=ignore"], |p| p.pipeline.emissary.scripts == Scripts::Ignore),
    (&["--emissary-lua=run"], |p| p.pipeline.fleet().http_settings.runs_scripts),
    (&["--emissary-ingress-class"], |p| p.pipeline.ingress.emissary_class),
    (&["--disable-fleets"], |p| p.fleets.is_none() && !p.pipeline.gateway.own_fleets),
    (&["--envoy-image=e"], of_fleets!(|fleets| fleets.envoy_image == "e")),
    (&["--sesame-image=s"], of_fleets!(|fleets| fleets.sesame_image == "s")),
    (&["--fleet-replicas=7"], of_fleets!(|fleets| fleets.replicas == 7)),
    (&["--fleet-xds-address=x"], of_fleets!(|fleets| fleets.xds.host == "x")),
    (&["--root-namespaces=a,b"], |p| p.pipeline.http_proxy.root_namespaces == ["a".into(), "b".into()]),
    (&["--envoy-service-name=proxies"], |p| p.status.addresses == Addresses::of_service("projectsesame", "proxies")),
    (&["--envoy-service-namespace=edge"], |p| p.status.addresses == Addresses::of_service("edge", "envoy")),
    (&["--envoy-service-http-address=::"], |p| p.pipeline.http.address == "::".parse::<std::net::IpAddr>().unwrap()),
    (&["--envoy-service-http-port=80"], |p| p.pipeline.http == Bind::any(80)),
    (&["--envoy-service-https-address=::"], |p| p.pipeline.https.address == "::".parse::<std::net::IpAddr>().unwrap()),
    (&["--envoy-service-https-port=443"], |p| p.pipeline.https == Bind::any(443)),
    (&["--stats-address=::"], |p| p.pipeline.stats.address == "::".parse::<std::net::IpAddr>().unwrap()),
    (&["--stats-port=9"], |p| p.pipeline.stats == Bind::any(9)),
    (&["--use-proxy-protocol"], both!(|http| http.proxy_protocol)),
    (&["--envoy-http-access-log=/a"], |p| &*p.pipeline.http_settings.access_log.path == "/a"),
    (&["--envoy-https-access-log=/b"], |p| &*p.pipeline.https_settings.access_log.path == "/b"),
    (&["--accesslog-format=json"], both!(|http| matches!(http.access_log.format, AccessLogFormat::Json(_)))),
    (&["--packing=plain"], |p| p.pipeline.packing == Packing::Plain),
    (&["--foreign-protection=refuse"], |p| {
        let of = &p.pipeline;
        [of.ingress.foreign_protection, of.http_proxy.foreign_protection, of.emissary.foreign_protection]
            == [pipeline::settings::ForeignProtection::Refuse; 3]
    }),
    (&["--certificates=per-chain"], |p| p.pipeline.resolver().is_none()),
    (&["--self-check"], |p| p.self_check),
    (&["--contour-metric-names"], |p| p.contour_metric_names),
    (&["--otlp-traces=http://collector:4317"], |p| p.otlp_traces == "http://collector:4317".parse().ok()),
    (&["--table-bytes=9"], |p| p.table_bytes == Some(9)),
    (&["--spoil=/x"], |p| p.pipeline.spoil.as_deref() == Some("/x")),
];

/// Flags whose effect other tests show.
const ELSEWHERE: [&str; 13] = [
    "cache-dir",
    "cache-key-file",
    "config-path",
    "sesame-config-name",
    "insecure",
    "disable-feature",
    "sesame-cafile",
    "sesame-cert-file",
    "sesame-key-file",
    "xds-ca-lifetime",
    "xds-certificate-lifetime",
    "xds-certificate-settle-time",
    "xds-certificates-dir",
];

/// Contour's flags of `serve`, beside those that every subcommand has.
const CONTOUR: &str = "accesslog-format config-path contour-cafile contour-cert-file contour-config-name contour-key-file \
    debug-http-address debug-http-port disable-feature disable-leader-election envoy-http-access-log \
    envoy-https-access-log envoy-service-http-address envoy-service-http-port envoy-service-https-address \
    envoy-service-https-port envoy-service-name envoy-service-namespace health-address health-port http-address http-port \
    incluster ingress-class-name ingress-status-address insecure kubeconfig kubernetes-client-burst kubernetes-client-qps \
    kubernetes-debug leader-election-lease-duration leader-election-renew-deadline leader-election-retry-period \
    leader-election-resource-name leader-election-resource-namespace root-namespaces stats-address stats-port \
    use-proxy-protocol watch-namespaces xds-address xds-port";

#[test]
fn every_flag_takes_effect() {
    let usual = Plan { warnings: vec![(Code::CommandLine, String::new())], ..plan(&[], "") };
    for (line, check) in FLAGS {
        assert!(!check(&usual), "{line:?} is so without being written");
        assert!(check(&plan(line, "")), "{line:?}");
    }
    for arg in Line::command().get_arguments() {
        let Some(name) = arg.get_long().filter(|name| !["help", "version"].contains(name)) else { continue };
        let shown = FLAGS.iter().any(|(line, _)| line[0].split('=').next() == Some(&format!("--{name}")));
        assert!(shown || ELSEWHERE.contains(&name), "nothing shows that --{name} takes effect");
    }
}

#[test]
fn every_flag_of_contour_is_there() {
    let command = flags::with_contour_names(Line::command(), |_| false);
    let mut known: Vec<&str> = command.get_arguments().filter_map(|arg| arg.get_long()).collect();
    known.extend(command.get_arguments().filter_map(|arg| arg.get_visible_aliases()).flatten());
    for name in CONTOUR.split_whitespace() {
        assert!(known.contains(&name), "--{name}");
    }
    assert!(command.get_arguments().any(|arg| arg.get_short() == Some('c')));
    let features = "extensionservices tlsroutes grpcroutes tcproutes backendtlspolicies";
    let line: Vec<String> = features.split(' ').map(|name| format!("--disable-feature={name}")).collect();
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    assert_eq!(args(&line).disable_feature.len(), 5);
    let read = plan(&line, "").source.kinds;
    let ignored: Vec<&str> =
        plan(&[], "").source.kinds.iter().filter(|kind| !read.contains(kind)).map(|kind| kind.name()).collect();
    let all = ["ExtensionService", "ExtensionService", "GRPCRoute", "TLSRoute", "TCPRoute", "BackendTLSPolicy"];
    assert_eq!(ignored, all);
    let disabled = plan(&line, "").pipeline.gateway.disabled;
    assert_eq!(disabled.iter().map(|kind| kind.name()).collect::<Vec<_>>(), all, "Gateways and classes know of it");
    assert!(plan(&line, "").warnings.is_empty());
}

#[test]
fn the_defaults_are_contours() {
    let plan = plan(&[], "");
    let addresses = [plan.xds, plan.health, plan.metrics, plan.debug].map(|address| address.to_string());
    assert_eq!(addresses, ["127.0.0.1:8001", "0.0.0.0:8000", "0.0.0.0:8000", "127.0.0.1:6060"]);
    let lease = plan.lease.unwrap();
    assert_eq!((&*lease.namespace, &*lease.name), ("projectsesame", "leader-elect"));
    assert!(lease.identity.starts_with("sesame-0_"), "{}", lease.identity);
    let times = [lease.lease_duration, lease.renew_deadline, lease.retry_period].map(|time| time.as_secs());
    assert_eq!(times, [15, 10, 2]);
    assert_eq!(plan.status.addresses, Addresses::of_service("projectsesame", "envoy"));
    assert_eq!((&*plan.status.instance, &*plan.status.manager), ("sesame-0", "sesame"));
    let fleets = plan.fleets.unwrap();
    assert_eq!((&*fleets.xds.host, fleets.xds.port, fleets.replicas), ("sesame.projectsesame.svc", 8001, 2));
    let mut usual = pipeline::Settings::default();
    usual.gateway.own_fleets = true;
    usual.http_proxy.open_extensions.namespace = Some("projectsesame".into());
    assert_eq!(plan.pipeline, usual);
    assert_eq!((plan.access.rate, plan.access.in_cluster, plan.access.kubeconfig), (None, false, None));
    assert!(plan.source.namespaces.is_empty());
    let read: Vec<Kind> = kind::ALL.iter().filter(|kind| kind.name() != "ContourConfiguration").copied().collect();
    assert_eq!(plan.source.kinds, read);
    assert_eq!((plan.self_check, plan.verbose, plan.warnings), (false, false, vec![]));
}

#[test]
fn certificates_are_issued_where_their_folder_is_named() {
    let line = ["--xds-certificates-dir=/c", "--xds-ca-lifetime=30", "--xds-certificate-lifetime=9"];
    let plan = attempt(&[&line[..], &["--xds-certificate-settle-time=1m"]].concat(), "").unwrap();
    assert_eq!(plan.security.unwrap().key, Path::new("/c/tls.key"));
    let policy = plan.issuing.unwrap().policy;
    let days = [policy.ca_lifetime, policy.lifetime].map(|time| time.as_secs() / (24 * 3600));
    assert_eq!((days, policy.settle), ([30, 9], Duration::from_secs(60)));
    let short = refusal(&["--xds-certificates-dir=/c", "--xds-ca-lifetime=359"]);
    assert!(short.contains("--xds-ca-lifetime must be at least three times"), "{short}");
    let slow = refusal(&["--xds-certificates-dir=/c", "--xds-certificate-settle-time=241h"]);
    assert!(slow.contains("--xds-certificate-lifetime must be at least twelve times"), "{slow}");
    let command = flags::with_contour_names(Line::command(), |_| false);
    for other in ["--insecure", "--contour-cafile=/x"] {
        assert!(command.clone().try_get_matches_from(["serve", "--xds-certificates-dir=/c", other]).is_err());
    }
}

/// The shared fleet serves the Gateway that is named; others have fleets of their own, unless these are disabled.
#[test]
fn a_gateway_that_is_named_is_bound_beside_others() {
    let file = "gateway: {gatewayRef: {namespace: shop, name: edge}}\n";
    for (flags, has_fleets) in [(&[][..], true), (&["--disable-fleets"], false)] {
        let plan = plan(flags, file);
        assert_eq!((plan.fleets.is_some(), plan.pipeline.gateway.own_fleets), (has_fleets, has_fleets));
        assert!(plan.pipeline.gateway.bound.is_some());
    }
}

#[test]
fn a_flag_stands_above_the_file() {
    let file = "incluster: true\nkubeconfig: /file\nkubernetesClientQPS: 1\nkubernetesClientBurst: 1\n\
                ingress-status-address: 10.0.0.1\nenvoy-service-name: file\nenvoy-service-namespace: file\n\
                accesslog-format: json\nmetrics: {contour: {address: 127.0.0.1, port: 1}}\n";
    let by_file = plan(&[], file);
    assert!(by_file.access.in_cluster);
    assert_eq!(by_file.metrics, "127.0.0.1:1".parse().unwrap());
    let line = [
        "--kubeconfig=/flag",
        "--kubernetes-client-qps=9",
        "--kubernetes-client-burst=9",
        "--ingress-status-address=a.example",
        "--accesslog-format=envoy",
        "--http-address=0.0.0.0",
        "--http-port=2",
    ];
    let both = plan(&line, file);
    assert_eq!((both.access.in_cluster, both.access.kubeconfig.as_deref()), (false, Some(Path::new("/flag"))));
    assert_eq!(both.access.rate, Some(Rate { per_second: 9.0, burst: 9 }));
    assert_eq!(both.status.addresses, "a.example".parse().unwrap());
    assert_eq!(both.pipeline.http_settings.access_log.format, AccessLogFormat::Envoy);
    assert_eq!(both.metrics, "0.0.0.0:2".parse().unwrap());
    let service = plan(&["--envoy-service-name=flag", "--envoy-service-namespace=flag"], "envoy-service-name: file");
    assert_eq!(service.status.addresses, Addresses::of_service("flag", "flag"));
    assert_eq!(plan(&["--kubernetes-client-qps=-1"], file).access.rate, None);
}

#[test]
fn lists_of_names_are_read_as_contour_reads_them() {
    type List = fn(&Plan) -> &[Box<str>];
    let lists: [(&str, List); 3] = [
        ("root-namespaces", |p| &p.pipeline.http_proxy.root_namespaces),
        ("ingress-class-name", |p| &p.pipeline.ingress.class_names),
        ("ingress-class-name", |p| &p.pipeline.http_proxy.class_names),
    ];
    for (flag, list) in lists {
        // Nothing named is as if the flag were not there.
        for nothing in ["", " "] {
            assert!(list(&plan(&[&format!("--{flag}={nothing}")], "")).is_empty(), "{flag}");
        }
        assert_eq!(list(&plan(&[&format!("--{flag}=a, b")], "")), ["a".into(), "b".into()], "{flag}");
        // A slip of the keyboard never opens what the flag closes.
        assert_eq!(list(&plan(&[&format!("--{flag}=,")], "")).len(), 2, "{flag}");
    }
    assert!(plan(&["--watch-namespaces="], "").source.namespaces.is_empty());
    assert_eq!(plan(&["--watch-namespaces=a, b,"], "").source.namespaces.len(), 2);
    assert!(attempt(&["--insecure", "--root-namespaces=b ", "--watch-namespaces= a, b"], "").is_ok());
}

#[test]
fn xds_has_all_three_files_or_the_word_insecure() {
    let files = ["--sesame-cafile=ca", "--contour-cert-file=cert", "--sesame-key-file=key"];
    let security = attempt(&files, "").unwrap().security.unwrap();
    let paths = [security.ca, security.certificate, security.key];
    assert_eq!(paths.map(|path| path.display().to_string()), ["ca", "cert", "key"]);
    assert!(plan(&[], "").security.is_none());
    for line in [&files[..2], &files[1..], &[]] {
        assert!(refusal(line).contains("--sesame-cafile"), "{line:?}");
    }
}

#[test]
fn what_contradicts_itself_is_refused_or_told() {
    let roots = refusal(&["--insecure", "--root-namespaces=a,b", "--watch-namespaces=a"]);
    assert!(roots.contains("has b"), "{roots}");
    let times = refusal(&["--insecure", "--leader-election-lease-duration=5s"]);
    assert!(times.contains("--leader-election"), "{times}");
    let ports = attempt(&["--insecure", "--stats-port=8080"], "").map(drop).unwrap_err();
    assert!(format!("{ports:#}").contains("the HTTP listener and the stats listener both listen on port 8080"));
    let [(code, why)] = &plan(&["--watch-namespaces=shop"], "").warnings[..] else { panic!("one warning") };
    assert_eq!(*code, Code::NamespaceNotWatched);
    assert!(why.contains("projectsesame/envoy"), "{why}");
    assert!(plan(&["--watch-namespaces=shop", "--ingress-status-address=10.0.0.1"], "").warnings.is_empty());
}

#[test]
fn a_replica_is_called_by_its_pod_or_its_host() {
    let named = |vars: &[(&str, &str)]| {
        let env = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Plan::new(&args(&["--insecure"]), Config::default(), env).unwrap().status.instance
    };
    assert_eq!(named(&[("POD_NAME", "pod"), ("HOSTNAME", "host")]), "pod");
    assert_eq!(named(&[("POD_NAME", ""), ("HOSTNAME", "host")]), "host");
    assert_eq!(named(&[]), "sesame");
}

#[test]
fn certificates_of_xds_connections_are_not_presented_to_backends() {
    let file =
        |namespace: &str| format!("tls:\n  envoy-client-certificate: {{namespace: {namespace}, name: cacert-client}}");
    let refused = attempt(&["--insecure"], &file("projectsesame")).map(drop).unwrap_err().to_string();
    assert!(refused.contains("Secret projectsesame/cacert-client is for xDS connections"), "{refused}");
    plan(&[], &file("shop"));
}
