//! The page `docs/configuration.md`: every flag and every key, written from the tables that the program itself uses.
//!
//! A test, because only this crate knows its flags. It compares the page; with `UPDATE_DOCS=1` it writes it, which is what
//! `cargo xtask docs` does.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use clap::{Arg, Args, Command};
use std::fmt::Write as _;
use std::path::Path;

use super::config::SECTIONS;
use super::config::row::{Effect, Row};
use crate::{cmd, flags, logging};

const HEAD: &str = "# Configuration of `sesame serve`

`sesame serve` takes Contour's flags, environment variables, configuration file and ContourConfiguration. This page is written
by `cargo xtask docs` from the tables that the program uses.

- Settings are in a file, given by `-c`, or in a ContourConfiguration in the namespace of Sesame, given by
  `--sesame-config-name`; not in both.
- Flags override the file and the object, for every setting: also `--http-address` and `--http-port`, which Contour lets
  the file override, and all flags beside a ContourConfiguration, which Contour then ignores. Flags override environment
  variables.
- Every flag `--sesame…` is also accepted as `--contour…`, and every environment variable `SESAME_…` as `CONTOUR_…` if
  only that is set.
- In the configuration file, an unknown key is an error with file, line and column: no setting is silently ignored.
- A changed file or object takes effect within a second, without a restart: ports, addresses and the log level included. It is
  applied as a whole or rejected as a whole; if it is rejected, the previous one stays in effect. One that is rejected because a port is in
  use, or because a certificate file cannot be read, is retried with exponential backoff, from one second to one minute. The log says why,
  the metric `sesame_configuration_valid` is 0, `sesame_configuration_changes_total` counts it, and a ContourConfiguration has its condition
  `Valid` and an event. What is marked `at start` below is the exception: a change is logged by its key, and takes effect
  with the next start.
- An address of health, metrics or debug pages that overlaps one in use on the same port, such as `0.0.0.0` and `10.0.0.1`, is refused
  while Sesame runs: change the port as well, or restart Sesame.
- A file is followed however it changes: rewritten, renamed, or by the symlink of a mounted ConfigMap. (A ConfigMap that is
  mounted with `subPath` never changes: Kubernetes does not update it.)
";

const DIFFERENCES: &str = "
## Differences from Contour

- The namespace of Sesame defaults to `projectsesame`; `SESAME_NAMESPACE` or `CONTOUR_NAMESPACE` sets it.
- JSON access logs have three more fields by default, `origin_kind`, `origin_namespace` and `origin_name`: the object that
  defined the route.
- `accesslog-format-string` need not end with a line break.
- A host whose own TLS versions leave none within `tls.minimum-protocol-version` and `tls.maximum-protocol-version` is
  reported and not served; Contour serves a configuration that no client can use.
- Limits have stricter defaults than Contour's: a buffer of 32 KiB for each connection, and 100 concurrent streams for each
  HTTP/2 connection.
- Requests to the API server are not rate limited unless `kubernetesClientQPS` is set.
- A ContourConfiguration is read while Sesame runs, not only when it starts, and its status is written.
- Tracing holds for every listener that takes HTTP, of the shared fleet and of the fleets of Gateways. `overallSampling: '0'`
  traces nothing; Contour takes it for 100. While the ExtensionService is missing or invalid, requests are served without spans, and
  the log and the condition `Valid` of the ContourConfiguration say so; Contour exits. A request that
  comes with a `traceparent` header joins that trace; whether it is sampled is decided here.
- `--watch-namespaces`: an Envoy Service outside of them causes a warning, because its addresses cannot be read.
";

fn page() -> String {
    let mut text = HEAD.to_owned();
    let command = cmd::serve::Args::augment_args(logging::Args::augment_args(Command::new("serve")));
    let command = flags::with_contour_names(command, |_| false);
    text += "\n## Flags\n\n| flag | environment variable | default | description |\n|---|---|---|---|\n";
    for arg in command.get_arguments().filter(|arg| arg.get_long().is_some() && !arg.is_hide_set()) {
        text += &flag(arg);
    }
    text += "\n## Settings\n\n`timeouts.request-timeout` is the key `request-timeout` inside `timeouts`; a field is below `spec` of a ContourConfiguration \
         (`projectcontour.io/v1alpha1` or `projectsesame.io/v1alpha1`; if both exist, the latter is read). Defaults are those of \
         the file; a ContourConfiguration has no idle timeout of connections (Envoy's default of 1h) unless it sets one.\n";
    for (title, rows) in SECTIONS {
        let _infallible = write!(
            text,
            "\n### {title}\n\n| key | field | value | default | description | status |\n|---|---|---|---|---|---|\n"
        );
        for row in *rows {
            text += &key(row);
        }
    }
    text + DIFFERENCES
}

fn flag(arg: &Arg) -> String {
    let names = arg.get_long().into_iter().chain(arg.get_visible_aliases().into_iter().flatten());
    let names: Vec<String> = names.map(|name| format!("`--{name}`")).collect();
    let short = arg.get_short().map(|short| format!(", `-{short}`")).unwrap_or_default();
    let variable = arg.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default();
    let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
    let default = defaults
        .filter(|value| !value.is_empty() && value != "false")
        .map(|value| format!("`{value}`"))
        .collect::<String>();
    let help = arg.get_help().unwrap().to_string();
    format!("| {}{short} | {variable} | {default} | {} |\n", names.join(", "), cell(&help))
}

fn key(row: &Row) -> String {
    let works = match row.effect {
        Effect::Works(_) if row.at_start => "`at start`",
        Effect::Works(_) => "supported",
        Effect::Nothing(_) => "no effect",
    };
    let default = if row.default.is_empty() { String::new() } else { format!("`{}`", row.default) };
    let says = match row.effect {
        Effect::Nothing(why) => format!("{}: {why}", row.says),
        _ => row.says.to_owned(),
    };
    let code = |path: &str| if path.is_empty() { String::new() } else { format!("`{path}`") };
    let (key, field) = (code(row.path), code(row.object));
    format!("| {key} | {field} | {} | {default} | {} | {works} |\n", cell(row.form), cell(&says))
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[test]
fn the_page_of_settings_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page(), "docs/configuration.md is out of date: run `cargo xtask docs`");
}
