//! Golden cases: one YAML file holds what people write, what is asked, what is answered, and what Envoy gets.
//!
//! In: a folder of case files. Out: nothing, or a report of everything that differs. A case goes the whole way: its objects
//! are read as a folder's are, built by the pipeline, compared with the case's golden part, given to a real Envoy by a
//! real xDS server, which must take all of it, and asked for every row of the case's table. One Envoy serves all cases,
//! each as the next state of its fleet, so a case costs milliseconds and every change from one to the next is a test too.
//!
//! ```yaml
//! # A path that nobody has is 404.
//! settings:                                  # optional: what the operator sets
//!   ingress-class-names: [mine]
//! ---
//! apiVersion: networking.k8s.io/v1           # the objects, as in any folder
//! kind: Ingress
//! ...
//! ---
//! requests:                                  # request: answer (status, and the backend or the place it leads to)
//! - http://a.example.com/x: 200 default/web
//! - POST https://a.example.com/y: 404
//!   http: 2
//! --- # What comes of it: UPDATE_CASES=1 writes it.
//! verdicts: ...
//! ```
//!
//! What a case does not have to say: a Service without EndpointSlices has a backend that calls itself `namespace/name`;
//! every address in 198.18.100.0/24 that a case mentions has a backend that calls itself by its address; a Secret with the
//! annotation `projectsesame.io/test-certificate: NAMES` is given a certificate for them (see [`objects`]).
//!
//! `CASES=text` runs only the cases whose names contain it.

mod backends;
mod clients;
mod cluster;
mod file;
mod golden;
mod objects;
mod proxy;
mod request;
mod settings;
mod text;

use std::path::{Path, PathBuf};
use std::time::Instant;

use pipeline::Pipeline;
use pipeline::settings::{Certificates, Packing};

use self::settings::Print;
use crate::certs::Ca;
use crate::envoy::Config;

pub use backends::Backends;
pub use clients::ClientCertificates;
pub use cluster::{Serving, run_in_cluster};
pub use file::Case;
pub use objects::object;
pub use proxy::{Error, Proxy};
pub use settings::Serve;

/// The runs of one process take turns: all of them listen on the same ports.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Runs every case of a folder, with virtual hosts packed like this. The packing makes no difference to a case, its golden
/// part included.
///
/// # Panics
/// When anything differs from what a case says; the message tells all of it.
pub async fn run(folder: &Path, packing: Packing) {
    run_with(folder, packing, Certificates::default()).await;
}

/// The same with certificates loaded like this, which makes no difference to requests either; the golden part is that of the
/// default. Cases without TLS are the same resources in every mode: they run in the default one only. Where all certificates come on
/// demand, requests are left out whose answer follows from which hosts share connections.
///
/// # Panics
/// When anything differs from what a case says; the message tells all of it.
pub async fn run_with(folder: &Path, packing: Packing, certificates: Certificates) {
    let envoy = EnvoyUnderTest { config: Config::new(), is_usual: true, known: &[] };
    run_all(folder, packing, certificates, envoy).await;
}

/// The same as [`run`] with the Envoy of another part, which makes no difference to requests; the golden part is not looked at, since no
/// Envoy has a part in it. `known` are texts in what that Envoy warns of, and nothing is to be done about: that it does not know a field
/// is a warning, too.
///
/// # Panics
/// When anything differs from what a case says; the message tells all of it.
pub async fn run_on(part: &str, known: &[&str], folder: &Path, packing: Packing) {
    let envoy = EnvoyUnderTest { config: Config::new().part(part), is_usual: false, known };
    run_all(folder, packing, Certificates::default(), envoy).await;
}

/// The Envoy that cases run on.
struct EnvoyUnderTest<'a> {
    config: Config,
    /// Whether it is the one that every case is written for.
    is_usual: bool,
    /// Texts in its warnings that do not count.
    known: &'a [&'a str],
}

async fn run_all(folder: &Path, packing: Packing, certificates: Certificates, envoy: EnvoyUnderTest<'_>) {
    let _turn = TURN.lock().await;
    let only = std::env::var("CASES").unwrap_or_default();
    let update = std::env::var_os("UPDATE_CASES").is_some();
    let mut runner = Runner::start(packing, certificates, &envoy).await.expect("a proxy to run cases on");
    let mut failed = Vec::new();
    let mut count = 0;
    for path in files(folder).into_iter().filter(|path| path.to_string_lossy().contains(&only)) {
        let begun = Instant::now();
        let case = Case::read(&path);
        if certificates != Certificates::default() && case.as_ref().is_ok_and(|case| !case.has_tls()) {
            continue;
        }
        count += 1;
        let wrong = match case {
            Ok(case) => runner.case(&case, update).await,
            Err(why) => vec![why],
        };
        let word = if wrong.is_empty() { "ok" } else { "FAILED" };
        println!("{:50} {word} in {:.0?}", path.strip_prefix(folder).unwrap_or(&path).display(), begun.elapsed());
        if !wrong.is_empty() {
            failed.push(format!("{}:\n{}", path.display(), wrong.join("\n")));
        }
    }
    assert!(count > 0, "there is no case in {}", folder.display());
    assert!(failed.is_empty(), "{} of {count} cases failed\n\n{}", failed.len(), failed.join("\n\n"));
    let is_known = |warning: &String| envoy.known.iter().any(|known| warning.contains(known));
    let warnings: Vec<String> = runner.proxy.envoy().warnings().into_iter().filter(|it| !is_known(it)).collect();
    assert!(warnings.is_empty(), "Envoy warned of what is ours:\n{}", warnings.join("\n"));
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

/// What all cases share.
struct Runner {
    packing: Packing,
    certificates: Certificates,
    /// Whether the golden part of cases is compared, or written.
    compares: bool,
    proxy: Proxy,
    backends: Backends,
    ca: Ca,
}

impl Runner {
    async fn start(packing: Packing, certificates: Certificates, envoy: &EnvoyUnderTest<'_>) -> Result<Runner, Error> {
        let (proxy, backends, ca) =
            (Proxy::with(envoy.config.clone().name("cases")).await?, Backends::new(), Ca::new("cases"));
        let compares = envoy.is_usual && certificates == Certificates::default();
        Ok(Runner { packing, certificates, compares, proxy, backends, ca })
    }

    /// Runs one case; gives what is wrong.
    async fn case(&mut self, case: &Case, update: bool) -> Vec<String> {
        let (packing, certificates) = (self.packing, self.certificates);
        let settings = pipeline::Settings { packing, certificates, ..case.settings.pipeline() };
        let (objects, problems) = match objects::read(case, &settings, &self.ca, &mut self.backends).await {
            Ok(read) => read,
            Err(why) => return vec![why],
        };
        let mut pipeline = Pipeline::new(&settings);
        for object in objects {
            pipeline.put(&object.key(), Some(object));
        }
        let mut output = pipeline.settle();
        for host in pipeline.unsigned() {
            let leaf = self.ca.leaf(&host.to_string()).make();
            let pair = model::tls::KeyPair { chain: leaf.chain_pem().into(), key: leaf.key_pem().into() };
            pipeline.sign(&host, pair);
        }
        output.xds.upserts.extend(pipeline.settle().xds.upserts);
        let mut wrong = Vec::new();
        let golden = golden::render(&output, &problems, &self.backends, case.settings.print);
        // What a case prints in full shows the packing too.
        let usual = packing == Packing::default();
        if !self.compares {
            // Chains are others, or the Envoy is; answers are not.
        } else if update && usual {
            case.rewrite(&golden).unwrap_or_else(|error| wrong.push(error));
        } else if !update && (usual || case.settings.print == Print::Brief) && golden != case.golden {
            wrong.push(text::differences(&case.golden, &golden));
        }
        if let Err(error) = pipeline.self_check() {
            wrong.push(format!("a build from nothing differs: {error}"));
        }
        if let Err(error) = self.proxy.replace(output.xds.upserts).await {
            wrong.push(format!("{error:?}"));
            return wrong;
        }
        let ports = request::Ports { http: settings.http.port, https: settings.https.port };
        let all_on_demand = certificates == Certificates::OnDemand;
        for row in case.requests.iter().filter(|row| !all_on_demand || !row.depends_on_shared_connections()) {
            if let Err(why) = request::check(row, ports, self.proxy.envoy(), &self.backends, &self.ca).await {
                wrong.push(format!("  {}\n    {}", row.line, why.replace('\n', "\n    ")));
            }
        }
        wrong
    }
}
