//! Runs the suite's program against an installation, and judges what came of it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::{Installation, Outcome, Report, Results};

/// All profiles of gateways.
const PROFILES: [&str; 5] = ["GATEWAY-HTTP", "GATEWAY-GRPC", "GATEWAY-TLS", "GATEWAY-TCP", "GATEWAY-UDP"];

/// What the report says of us.
const ABOUT: [(&str, &str); 5] = [
    ("-organization", "projectsesame"),
    ("-project", "sesame"),
    ("-url", "https://github.com/projectsesame/sesame"),
    ("-version", concat!("v", env!("CARGO_PKG_VERSION"))),
    ("-contact", "https://github.com/projectsesame/sesame/issues"),
];

/// An address that no load balancer has: it is for documentation.
const UNUSABLE_ADDRESS: &str = "203.0.113.9";

/// The tests of meshes, which all profiles of gateways leave out: how their names begin, and how many there are.
const MESH: (&str, usize) = ("Mesh", 23);

/// The tests of the features that the GatewayClass does not list: client certificates. Those of other features that it does not list
/// do not exist.
const NOT_CLAIMED: [&str; 6] = [
    "GatewayFrontendClientCertificateValidation",
    "GatewayFrontendClientCertificateValidationInsecureFallback",
    "GatewayFrontendInvalidDefaultClientCertificateValidation",
    "GatewayInvalidFrontendClientCertificateValidation",
    "GatewayInvalidTLSBackendConfiguration",
    "GatewayTLSBackendClientCertificate",
];

/// What to run.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Only the test of this name.
    pub test: Option<String>,
    /// Where the suite writes its report.
    pub report: PathBuf,
    /// One more argument of the suite each.
    pub arguments: Vec<String>,
}

/// What a run of the suite came to.
#[derive(Clone, Debug)]
pub struct Run {
    /// How each test ended.
    pub results: Results,
    /// What the suite wrote; nothing if it ran a single test or died.
    pub report: Option<Report>,
    /// Whether the suite's own exit code is good.
    success: bool,
}

impl Suite {
    /// Runs it to its end. Each line of its output goes to `line`, with the test that it ends, if it ends one.
    pub async fn run(
        &self,
        installation: &Installation,
        mut line: impl FnMut(&str, Option<(String, Outcome, f64)>),
    ) -> Result<Run> {
        let program = parts::program("gateway-api-conformance")?;
        let mut child = Command::new(&program)
            .args(self.words(installation))
            .env("KUBECONFIG", installation.kubeconfig())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| program.display().to_string())?;
        let output = child.stdout.take().context("the suite has no output")?;
        let mut lines = BufReader::new(output).lines();
        let mut results = Results::default();
        while let Some(text) = lines.next_line().await? {
            let ended = results.take_line(&text);
            line(&text, ended);
        }
        let success = child.wait().await?.success();
        let report = if self.test.is_none() { Report::read(&self.report).ok() } else { None };
        Ok(Run { results, report, success })
    }

    /// The suite's arguments. Without `test2json` Go holds back how tests ended until the last of them has.
    fn words(&self, installation: &Installation) -> Vec<String> {
        let mut words: Vec<String> =
            ["-test.run=^TestConformance$", "-test.v=test2json", "-test.timeout=60m", "-gateway-class=sesame"]
                .map(str::to_owned)
                .into();
        words.push(format!("-conformance-profiles={}", PROFILES.join(",")));
        match &self.test {
            Some(test) => words.push(format!("-run-test={test}")),
            None => words.push(format!("-report-output={}", self.report.display())),
        }
        words.extend(ABOUT.iter().map(|(flag, value)| format!("{flag}={value}")));
        if let Some(usable) = installation.usable_address() {
            words.push(format!("-usable-address={usable}"));
            words.push(format!("-unusable-address={UNUSABLE_ADDRESS}"));
        }
        words.extend(self.arguments.iter().cloned());
        words
    }
}

impl Run {
    /// What speaks against conformance: empty if exit code, lines and report agree that all of it holds.
    pub fn objections(&self, suite: &Suite) -> Vec<String> {
        let mut found: Vec<String> = self.results.of(Outcome::Failed).map(|test| format!("{test} failed")).collect();
        if found.is_empty() && !self.success {
            found.push("the suite ended with an error".to_owned());
        }
        if self.results.of(Outcome::Passed).next().is_none() {
            found.push("no test passed".to_owned());
        }
        match (&self.report, &suite.test) {
            (_, Some(_)) => {}
            (Some(report), None) => {
                found.extend(report.objections(&PROFILES));
                found.extend(skipped(&self.results));
            }
            (None, None) => found.push(format!("there is no report in {}", show(&suite.report))),
        }
        found
    }
}

/// What was skipped, and should not have been: a test that is silently left out is no conformance.
fn skipped(results: &Results) -> impl Iterator<Item = String> {
    let (prefix, most) = MESH;
    let (mesh, others): (Vec<&str>, Vec<&str>) =
        results.of(Outcome::Skipped).partition(|test| test.starts_with(prefix));
    let too_many = mesh.len() > most;
    let too_many = too_many.then(|| format!("{} tests of meshes were skipped, and there are {most}", mesh.len()));
    let others = others.into_iter().filter(|test| !NOT_CLAIMED.contains(test));
    too_many.into_iter().chain(others.map(|test| format!("{test} was skipped, and its features are claimed")))
}

fn show(file: &Path) -> String {
    file.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped_of(names: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut results = Results::default();
        for name in names {
            results.take_line(&format!("    --- SKIP: TestConformance/{name} (0.00s)"));
        }
        skipped(&results).collect()
    }

    #[test]
    fn only_meshes_and_features_that_are_not_claimed_may_be_skipped() {
        let mesh = |count: usize| (0..count).map(|number| format!("Mesh{number}"));
        let known = NOT_CLAIMED.map(str::to_owned);
        assert!(skipped_of(mesh(MESH.1).chain(known)).is_empty());
        assert_eq!(skipped_of(mesh(MESH.1 + 1)), ["24 tests of meshes were skipped, and there are 23"]);
        let found = skipped_of(["HTTPRouteWeight".to_owned()]);
        assert_eq!(found, ["HTTPRouteWeight was skipped, and its features are claimed"]);
    }
}
