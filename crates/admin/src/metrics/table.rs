//! Every metric: its name, its type, its labels, what it says, and what Contour calls it.
//!
//! The page `docs/metrics.md` is written from this table, and a test compares it with what a running server shows, so that a name,
//! a label or a description does not change by accident. `stable.txt` has the names, types and labels that dashboards and alerts of
//! users may depend on: a metric may be added, but none goes or changes without the list being edited.

use std::fmt::Write as _;

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name of its family: without `_total` and `_info`, which samples have.
    pub name: &'static str,
    /// `counter`, `gauge`, `histogram` or `info`.
    pub form: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
    /// The name of the family that says the same in Contour, if there is one.
    pub contour: Option<&'static str>,
}

macro_rules! metrics {
    ($($form:ident $name:ident [$($label:literal),*] $help:literal $(= $contour:ident)?;)*) => {
        /// All of them, in the order of the page.
        pub const METRICS: &[Metric] = &[$(Metric {
            name: stringify!($name),
            form: stringify!($form),
            labels: &[$($label),*],
            help: $help,
            contour: { let name: &[&str] = &[$(stringify!($contour))?]; if name.is_empty() { None } else { Some(name[0]) } },
        }),*];
    };
}

metrics! {
    info sesame_build ["version", "revision"] "Build information" = contour_build;
    gauge sesame_ready [] "1 if proxies may connect to this replica, else 0";
    gauge sesame_leader [] "1 if this replica is the leader, else 0";
    gauge sesame_apiserver_connected [] "1 if the API server answers, else 0";
    gauge sesame_source_last_event_timestamp_seconds ["kind"] "Time of the last watch event for each kind, in seconds since the epoch; bookmarks arrive about once a minute";
    gauge sesame_objects ["kind"] "Objects read, by kind" = contour_dag_cache_object;
    counter sesame_batches [] "Batches of changes processed" = contour_dagrebuild;
    histogram sesame_build_seconds [] "Seconds from a batch of changes to published xDS resources" = contour_dagrebuild_seconds;
    gauge sesame_table_rows ["table"] "Rows of the pipeline's tables";
    gauge sesame_table_failed_rows [] "Rows whose last computation failed";
    counter sesame_recomputed_keys ["table"] "Keys recomputed";
    counter sesame_unchanged_keys [] "Keys recomputed with an unchanged result";
    gauge sesame_verdicts ["severity"] "Verdicts on objects, by severity";
    gauge sesame_object_verdicts ["namespace", "kind", "code"] "Verdicts on objects, by namespace, kind and code; all that are not among the most frequent have code other";
    gauge sesame_certificate_expiry_timestamp_seconds ["namespace", "secret"] "Expiry time of the certificates that expire soonest among those that hosts use, in seconds since the epoch";
    gauge sesame_configuration_valid [] "1 if the current configuration is in effect, 0 while a changed one is rejected";
    counter sesame_configuration_changes ["result"] "Changes of the configuration, by result";
    counter sesame_jwks_fetches ["result"] "Fetches of JSON Web Key Sets, by result";
    gauge sesame_jwks_servers [] "Servers from which JSON Web Key Sets are fetched";
    gauge sesame_jwks_servers_without_keys [] "Servers of JSON Web Key Sets that have never answered with keys";
    gauge sesame_jwks_oldest_keys_age_seconds [] "Age of the JSON Web Key Set whose last successful fetch is longest ago, in seconds";
    gauge sesame_disk_cache_enabled [] "Whether the last write of the disk cache succeeded; 0 without one";
    gauge sesame_disk_cache_size_bytes [] "Size of the disk cache";
    gauge sesame_disk_cache_written_timestamp_seconds [] "When the disk cache was last written";
    counter sesame_status_writes ["kind", "result"] "Status updates, by result" = contour_status_update;
    histogram sesame_status_lag_seconds [] "Seconds from a status change to its update on the API server";
    gauge sesame_status_behind [] "Objects whose status update is outstanding";
    counter sesame_events ["kind", "result"] "Kubernetes Events, by result";
    gauge sesame_proxies ["fleet", "state"] "Connected proxies, by fleet and state; stuck is behind for longer than ten seconds";
    gauge sesame_xds_connections [] "Open xDS connections";
    gauge sesame_xds_handshakes [] "xDS connections that are not authenticated yet";
    counter sesame_xds_refused_connections ["reason"] "xDS connections closed before authentication, by reason";
    gauge sesame_xds_certificate_expiry_timestamp_seconds ["certificate"] "Expiry time of the CA and the certificate of the xDS server, in seconds since the epoch";
    gauge sesame_xds_certificates_invalid [] "1 while the certificate files of the xDS server cannot be used and the last valid ones are used instead, else 0";
    gauge sesame_xds_certificates_behind [] "Replicas and proxies that a rotation of the certificates of xDS connections waits for, as known to the leader";
    gauge sesame_xds_streams ["service", "variant"] "Open xDS streams";
    counter sesame_xds_streams_ended ["reason"] "xDS streams closed by the server, by reason";
    counter sesame_xds_requests ["type"] "Discovery requests received";
    counter sesame_xds_responses ["type"] "Discovery responses sent";
    counter sesame_xds_response_bytes ["type"] "Bytes of discovery responses sent";
    counter sesame_xds_encodes ["type"] "Discovery responses encoded; identical responses are encoded once";
    histogram sesame_xds_ack_seconds ["type"] "Seconds from a discovery response to its ACK";
    counter sesame_xds_nacks ["type"] "Discovery responses rejected by clients (NACK)";
    counter sesame_xds_rejections ["type"] "Resources identified as the cause of a NACK";
    gauge sesame_xds_pending ["type"] "xDS resources not yet acknowledged by connected proxies";
    counter process_cpu_seconds [] "User and system CPU time in seconds";
    gauge process_start_time_seconds [] "Start time of the process, in seconds since the epoch";
    gauge process_resident_memory_bytes [] "Resident memory in bytes";
    gauge process_virtual_memory_bytes [] "Virtual memory in bytes";
    gauge process_open_fds [] "Open file descriptors";
    gauge process_max_fds [] "Maximum number of open file descriptors";
}

impl Metric {
    /// The name that samples have, and people search for.
    pub fn sample(&self) -> String {
        sample(self.name, self.form)
    }
}

fn sample(name: &str, form: &str) -> String {
    match form {
        "counter" => format!("{name}_total"),
        "info" => format!("{name}_info"),
        _ => name.to_owned(),
    }
}

/// A page of OpenMetrics with every family that Contour has, too, once more under Contour's name.
pub(super) fn with_contour_names(page: &str) -> String {
    let mut text = page.trim_end_matches("# EOF\n").to_owned();
    for Metric { name, contour, .. } in METRICS {
        let Some(contour) = contour else { continue };
        for line in page.lines() {
            let (head, rest) = match line.strip_prefix("# ").and_then(|line| line.split_once(' ')) {
                Some((word, rest)) => (format!("# {word} "), rest),
                None => (String::new(), line),
            };
            // A family ends where its labels, a suffix of its samples, its value or its description begin.
            let Some(rest) = rest.strip_prefix(name) else { continue };
            let suffix = rest.split(['{', ' ']).next().unwrap_or_default();
            if ["", "_total", "_info", "_bucket", "_count", "_sum"].contains(&suffix) {
                let _infallible = writeln!(text, "{head}{contour}{rest}");
            }
        }
    }
    text + "# EOF\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, path::Path};

    /// Names, types and labels that users may depend on.
    const STABLE: &str = include_str!("stable.txt");

    const HEAD: &str = "# Metrics of `sesame serve`

`/metrics` is served on port 8000 unless [the configuration](configuration.md) says otherwise, in OpenMetrics, or in the classic text
format for clients that prefer `text/plain` in their `Accept` header. This page is written by `cargo xtask docs` from the table
that tests compare with a running server.

- The number of series does not grow with the number of hosts. Verdicts by namespace, kind and code are the 150 most frequent, and
  one series with the code `other` for the rest. Of certificates, the 50 that expire soonest have a series. Of fleets, the first 14 by
  name have series of their own, and all others are the fleet `other`.
- `time() - sesame_source_last_event_timestamp_seconds` is the age of the last event of a kind.
- `--contour-metric-names` shows the metrics with a name in the last column under that name as well. Labels are those of Sesame.

| name | type | labels | description | in Contour |
|---|---|---|---|---|
";

    fn page() -> String {
        let mut text = HEAD.to_owned();
        for metric in METRICS {
            let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let form = if metric.form == "info" { "gauge" } else { metric.form };
            let contour = metric.contour.map(|name| format!("`{}`", sample(name, metric.form))).unwrap_or_default();
            let (name, labels) = (metric.sample(), labels.join(", "));
            let _infallible = writeln!(text, "| `{name}` | {form} | {labels} | {} | {contour} |", metric.help);
        }
        text
    }

    #[test]
    fn the_page_of_metrics_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, page()).expect("the page can be written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == page(), "docs/metrics.md is out of date: run `cargo xtask docs`");
    }

    /// The lines of the list of stable metrics.
    fn stable() -> BTreeSet<String> {
        STABLE.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    /// Metrics as lines of that list, under Contour's names as well.
    fn lines(metrics: &[Metric]) -> BTreeSet<String> {
        let line = |name, metric: &Metric| {
            let line = format!("{} {} {}", sample(name, metric.form), metric.form, metric.labels.join(","));
            line.trim_end().to_owned()
        };
        let own = metrics.iter().map(|metric| line(metric.name, metric));
        let of_contour = metrics.iter().filter_map(|metric| Some(line(metric.contour?, metric)));
        own.chain(of_contour).collect()
    }

    /// What is in the list and no longer in the table, in words.
    fn broken(metrics: &[Metric]) -> Vec<String> {
        let gone =
            |line: &String| format!("{line}: is gone or changed: add it to CHANGELOG under Changed and remove it here");
        stable().difference(&lines(metrics)).map(gone).collect()
    }

    #[test]
    fn stable_metrics_stay_as_they_are() {
        assert_eq!(broken(METRICS), [""; 0], "crates/admin/src/metrics/stable.txt");
        let added: Vec<String> = lines(METRICS).difference(&stable()).cloned().collect();
        assert_eq!(
            added, [""; 0],
            "new metrics: add them to CHANGELOG under Added and to crates/admin/src/metrics/stable.txt"
        );
    }

    #[test]
    fn a_metric_that_goes_or_changes_is_told() {
        let told = |change: fn(&mut Vec<Metric>)| {
            let mut metrics = METRICS.to_vec();
            change(&mut metrics);
            broken(&metrics)
        };
        let words = "is gone or changed: add it to CHANGELOG under Changed and remove it here";
        let gone = told(|metrics| metrics.retain(|metric| metric.name != "sesame_ready"));
        assert_eq!(gone, [format!("sesame_ready gauge: {words}")]);
        let relabelled = told(|metrics| {
            let row = metrics.iter_mut().find(|metric| metric.name == "sesame_xds_streams").expect("it is there");
            row.labels = &["service"];
        });
        assert_eq!(relabelled, [format!("sesame_xds_streams gauge service,variant: {words}")]);
        let retyped = told(|metrics| {
            let row = metrics.iter_mut().find(|metric| metric.name == "sesame_xds_connections").expect("it is there");
            row.form = "counter";
        });
        assert_eq!(retyped, [format!("sesame_xds_connections gauge: {words}")]);
    }

    #[test]
    fn names_are_by_the_rules_and_unique() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
        for Metric { name, form, .. } in METRICS {
            assert!(!["_total", "_info", "_count", "_sum", "_bucket"].iter().any(|end| name.ends_with(end)), "{name}");
            assert!(
                *form != "histogram" || name.ends_with("_seconds") || name.ends_with("_bytes"),
                "{name} has no unit"
            );
        }
    }

    #[test]
    fn what_contour_has_is_shown_under_its_name_once_more() {
        let page = "# HELP sesame_build Build.\n# TYPE sesame_build info\nsesame_build_info{version=\"1\"} 1\n\
                    # HELP sesame_build_seconds S.\n# TYPE sesame_build_seconds histogram\nsesame_build_seconds_sum 1\n\
                    # HELP sesame_leader L.\n# TYPE sesame_leader gauge\nsesame_leader 1\n# EOF\n";
        let text = with_contour_names(page);
        let added = "# HELP contour_build Build.\n# TYPE contour_build info\ncontour_build_info{version=\"1\"} 1\n\
                     # HELP contour_dagrebuild_seconds S.\n# TYPE contour_dagrebuild_seconds histogram\n\
                     contour_dagrebuild_seconds_sum 1\n# EOF\n";
        assert_eq!(text, page.replace("# EOF\n", added));
    }
}
