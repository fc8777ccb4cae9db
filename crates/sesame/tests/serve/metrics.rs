//! Metrics of a running server: as the table says, in both formats, and not too many.

use std::collections::{BTreeMap, BTreeSet};

use admin::table::{METRICS, Metric};
use serde_json::json;
use testbed::{Backend, Client, Net, certs::Ca, promtool};

use crate::bed::{Bed, app};
use crate::monitoring;

/// What appears with its first event, which there is none of here.
const LATER: [&str; 3] = ["sesame_xds_refused_connections", "sesame_xds_streams_ended", "sesame_events"];

/// A family as it is shown.
#[derive(Debug, Default)]
struct Family {
    form: String,
    help: String,
    labels: BTreeSet<String>,
    series: usize,
}

/// The families of a page of OpenMetrics.
fn families(page: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in page.lines().filter(|line| *line != "# EOF") {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", name, help] => {
                current = name.to_owned();
                families.entry(current.clone()).or_default().help = help.trim_end_matches('.').to_owned();
            }
            ["#", "TYPE", name, form] => families.entry(name.to_owned()).or_default().form = form.to_owned(),
            _ => {
                let family = families.get_mut(&current).unwrap();
                assert!(line.starts_with(&current), "{line} is not of {current}");
                family.series += 1;
                let labels = line.split_once('{').map_or("", |(_, rest)| rest.rsplit_once('}').unwrap().0);
                // No value here has a comma or an equals sign in it.
                let names = labels.split(',').filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
                family.labels.extend(names.filter(|name| name != "le"));
            }
        }
    }
    families
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_those_of_the_table_in_both_formats_and_bounded() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("metrics").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let leaf = Ca::new("metrics").leaf("tls.example.com").make();
    let service = |name: &str| json!({ "service": { "name": name, "port": { "number": 80 } } });
    let ingress = |name: &str, backend: &str, tls: serde_json::Value| {
        let path = json!({ "path": "/", "pathType": "Prefix", "backend": service(backend) });
        json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": name, "namespace": namespace },
            "spec": { "tls": tls, "rules": [{ "host": format!("{name}.example.com"), "http": { "paths": [path] } }] } })
    };
    for object in [
        json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": { "name": "cert", "namespace": namespace },
            "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } }),
        ingress("tls", "web", json!([{ "hosts": ["tls.example.com"], "secretName": "cert" }])),
        ingress("broken", "missing", json!([])),
    ] {
        bed.api.apply(&object.to_string()).await.unwrap();
    }
    let replica = bed.replica("sesame-0").await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.answers("web.example.com", 200).await;
    replica.in_step(1).await;
    replica.expect_metric("sesame_status_writes_total", "Ingress", |count| count > 0.0).await;
    replica.expect_metric("sesame_certificate_expiry_timestamp_seconds", "secret=\"cert\"", |at| at > 1e9).await;
    replica.expect_metric("sesame_object_verdicts", "kind=\"Ingress\",code=\"SES3001\"", |count| count == 1.0).await;
    assert_eq!(replica.metric("sesame_xds_nacks_total", "type=\"lds\"").await, 0.0);

    let client = Client::new((replica.address, 8000).into());
    let page = client.get("/metrics").await.unwrap();
    assert!(page.headers["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    let shown = families(&page);
    for (name, family) in &shown {
        let row = METRICS.iter().find(|metric| metric.name == name);
        let row = row.unwrap_or_else(|| panic!("{name} is not in the table of metrics"));
        assert_eq!((&*family.form, &*family.help), (row.form, row.help), "{name}");
        let labels: BTreeSet<String> = row.labels.iter().map(|label| (*label).to_owned()).collect();
        assert_eq!(family.labels, labels, "{name}");
    }
    for metric in METRICS.iter().filter(|metric| !LATER.contains(&metric.name)) {
        assert!(shown.contains_key(metric.name), "{} is not shown: {page}", metric.name);
    }
    // Kinds are called as in manifests, and no value has a space in it.
    assert!(page.contains("sesame_objects{kind=\"EndpointSlice\"}"), "{page}");
    let spaced = page.lines().filter(|line| !line.starts_with('#')).find(|line| line.matches(' ').count() > 1);
    assert_eq!(spaced, None);
    // With as many verdicts and certificates as there may ever be series of.
    let series: usize = shown.values().map(|family| family.series).sum();
    let bounded = ["sesame_object_verdicts", "sesame_certificate_expiry_timestamp_seconds"];
    let bounded: usize = bounded.iter().map(|name| shown[*name].series).sum();
    let fleets = admin::proxies::MOST_FLEETS * shown["sesame_proxies"].series;
    // With `--contour-metric-names`, some are there twice.
    let twice = METRICS.iter().filter(|metric| metric.contour.is_some());
    let twice: usize = twice.map(|metric| shown.get(metric.name).map_or(0, |family| family.series)).sum();
    let most = series - bounded + admin::MOST_VERDICT_SERIES + 1 + admin::MOST_CERTIFICATES + fleets + twice;
    assert!(most <= 1000, "{series} series, {most} at most");

    let classic = client.header("accept", "text/plain;version=0.0.4;q=1,*/*;q=0.1").get("/metrics").await.unwrap();
    assert!(classic.headers["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
    let classic = String::from_utf8(classic.body.to_vec()).unwrap();
    assert!(!classic.contains("# EOF") && classic.contains("# TYPE sesame_batches_total counter\n"), "{classic}");
    promtool::check_metrics(&classic).unwrap();

    // Whatever series and labels a panel or an alert names are there, here or on the page of a proxy that has had a request.
    let proxy = Client::new((bed.http().ip(), 8002).into()).get("/stats/prometheus").await.unwrap();
    let proxy = String::from_utf8(proxy.body.to_vec()).unwrap();
    let mut there = monitoring::samples(&classic);
    there.extend(monitoring::samples(&proxy));
    let queries = monitoring::queries();
    let missing: Vec<String> = queries.iter().flat_map(|query| monitoring::missing(query, &there)).collect();
    assert_eq!(missing, [""; 0], "dashboards and alerts name what nobody shows");
}

/// Dashboards and alerts that were written for Contour find its names, beside ours.
#[tokio::test(flavor = "multi_thread")]
async fn with_the_switch_what_contour_has_is_shown_under_its_names_too() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("contour").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let address = Net::here().unwrap().address();
    let replica = bed.replica_at("sesame-0", address, &[("contour-metric-names", "")]).await.ready().await;
    replica.expect_metric("sesame_status_writes_total", "Ingress", |count| count > 0.0).await;
    assert_eq!(replica.metric("contour_build_info", "version=").await, 1.0);
    assert_eq!(replica.metric("contour_dag_cache_object", "kind=\"Ingress\"").await, 1.0);

    let client = Client::new((replica.address, 8000).into());
    let page = client.get("/metrics").await.unwrap();
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    let shown = families(&page);
    for Metric { name, contour, .. } in METRICS {
        let Some(contour) = contour else { continue };
        let (own, other) = (&shown[*name], &shown[*contour]);
        assert_eq!((&own.form, &own.help, &own.labels), (&other.form, &other.help, &other.labels), "{contour}");
        assert_eq!(own.series, other.series, "{contour}");
    }
    let series: usize = shown.values().map(|family| family.series).sum();
    let twice: usize = shown.iter().filter(|(name, _)| name.starts_with("contour_")).map(|(_, of)| of.series).sum();
    assert!(twice > 0 && series <= 1000, "{series} series, {twice} of them with Contour's names");

    let classic = client.header("accept", "text/plain;version=0.0.4").get("/metrics").await.unwrap();
    let classic = String::from_utf8(classic.body.to_vec()).unwrap();
    assert!(classic.contains("# TYPE contour_dagrebuild_total counter\n"), "{classic}");
    promtool::check_metrics(&classic).unwrap();
}
