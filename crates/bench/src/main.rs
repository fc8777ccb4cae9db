//! `make bench`: how long it takes from a write to the API server until Envoy serves it, at every size, beside peers.
//!
//! In: a built `sesame`, sizes. Out: progress and tables on the terminal, a JSON file beside them. It runs in
//! `tools/sandbox`, with a real API server, a real Envoy and real backends; `docs/benchmarks.md` says how to run it
//! and what the rows mean.

mod fill;
mod follower;
mod hostile;
mod implementation;
mod machine;
mod measure;
mod progress;
mod proxy;
mod report;
mod row;
mod usage;
mod world;
mod writer;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use testbed::Backend;

use hostile::Attack;
use implementation::{Contour, Implementation, Sesame};
use measure::Options;
use report::Report;
use world::{FIRST, MappingShape, SECOND, Servers, Wording, World};

/// How many hosts there are unless something is said.
const SIZES: [usize; 3] = [1000, 10_000, 50_000];

/// Measure changes from the API server to a served request
#[derive(Debug, Parser)]
struct Args {
    /// The program that is measured
    #[arg(long, value_name = "FILE", required_unless_present = "from")]
    sesame: Option<PathBuf>,
    /// One more argument of sesame serve; may be repeated
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    serve: Vec<String>,
    /// How many hosts of Ingresses; as many as --routes and --mappings, or 1000,10000,50000 if none of the next five is given
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    sizes: Vec<usize>,
    /// How many hosts, each with a certificate of its own and asked by HTTPS
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    certificates: Vec<usize>,
    /// How many hosts of HTTPProxies
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    proxies: Vec<usize>,
    /// How many hosts of HTTPProxies, a third of them protected by tokens, client certificates or an authorization server
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    protected: Vec<usize>,
    /// How many hosts of HTTPRoutes, all of one Gateway; without peers
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    routes: Vec<usize>,
    /// How many Mappings of Emissary, on Hosts of which a third have TLS; without peers
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    mappings: Vec<usize>,
    /// Which Mappings belong to which Hosts
    #[arg(long, value_name = "SHAPE", value_enum, default_value_t, requires = "mappings")]
    mapping_shape: MappingShape,
    /// Measure Contour, too
    #[arg(long)]
    peers: bool,
    /// Leave peers their own limits towards the API server
    #[arg(long, requires = "peers")]
    as_shipped: bool,
    /// How often each kind of change is made
    #[arg(long, value_name = "NUMBER", default_value = "50")]
    samples: usize,
    /// How many writes are made at once
    #[arg(long, value_name = "NUMBER", default_value = "1000")]
    writes: usize,
    /// How often it is started from nothing
    #[arg(long, value_name = "NUMBER", default_value = "3")]
    starts: usize,
    /// How many clients connect at once
    #[arg(long, value_name = "NUMBER", default_value = "100")]
    clients: usize,
    /// How many clients come back after a restart
    #[arg(long, value_name = "NUMBER", default_value = "1000")]
    returning: usize,
    /// At which number of hosts they do
    #[arg(long, value_name = "NUMBER", default_value = "10000")]
    clients_at: usize,
    /// For how many seconds routes are edited at a steady rate
    #[arg(long, value_name = "SECONDS", default_value = "30")]
    editing: u64,
    /// Attack instead: one tenant's attacks, and what they do to the changes of others
    #[arg(long, conflicts_with_all = ["sizes", "certificates", "proxies", "protected", "routes", "mappings", "peers"])]
    hostile: bool,
    /// Which attacks; all of them if not given
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_enum, requires = "hostile")]
    attacks: Vec<Attack>,
    /// How many hosts the others have during an attack
    #[arg(long, value_name = "NUMBER", default_value = "1000")]
    others: usize,
    /// How much of each attack: 1 is what the table says
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    scale: f64,
    /// For how many seconds the others make changes without an attack, and again once it is in place
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    window: u64,
    /// With how many hosts two replicas are measured after the attacks; 0 leaves that out
    #[arg(long, value_name = "NUMBER", default_value = "50000")]
    replicas_at: usize,
    /// Measure on a busy machine, too, and say so
    #[arg(long)]
    force: bool,
    /// The folder for the figures
    #[arg(long, value_name = "FOLDER", default_value = "target/bench")]
    out: PathBuf,
    /// Print the tables as Markdown
    #[arg(long)]
    markdown: bool,
    /// Measure nothing, and print the tables of this file
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(file) = &args.from {
        print!("{}", Report::read(file)?.tables(args.markdown));
        return Ok(());
    }
    let report = measure_all(&args).await?;
    let file = report.write(&args.out)?;
    print!("{}", report.tables(args.markdown));
    eprintln!("bench: figures are in {}", file.display());
    let failed = report.runs.iter().filter_map(|run| run.failed.as_ref());
    match failed.chain(report.hostile.iter().filter_map(|outcome| outcome.failed.as_ref())).count() {
        0 => Ok(()),
        failed => bail!("{failed} of {} runs stopped before their end", report.runs.len() + report.hostile.len()),
    }
}

async fn measure_all(args: &Args) -> Result<Report> {
    let Some(program) = args.sesame.clone() else { bail!("--sesame is missing") };
    let machine = machine::until_quiet(args.force).await?;
    eprintln!("bench: {machine}");
    let mut report = Report {
        at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        arguments: std::env::args().skip(1).collect(),
        machine,
        runs: Vec::new(),
        hostile: Vec::new(),
        fleet: None,
    };
    // For the whole run, at the addresses that every EndpointSlice has.
    let mut backends = Vec::new();
    for backend in [FIRST, SECOND] {
        backends.push(Backend::named(backend.name).address(backend.ip).start().await?);
    }
    let _servers = Servers::start().await?;
    match args.hostile {
        true => attack_all(args, program, &mut report).await?,
        false => run_all(args, program, &mut report).await?,
    }
    Ok(report)
}

async fn attack_all(args: &Args, sesame: PathBuf, report: &mut Report) -> Result<()> {
    let options = hostile::Options {
        sesame,
        serve: args.serve.clone(),
        hosts: args.others,
        scale: args.scale,
        samples: args.samples,
        window: Duration::from_secs(args.window),
        replicas_at: args.replicas_at,
    };
    let attacks = if args.attacks.is_empty() { Attack::value_variants() } else { &args.attacks };
    let told = |outcome| {
        report.hostile.push(outcome);
        // What is there is kept, whatever becomes of the rows that follow.
        report.write(&args.out).map(drop)
    };
    hostile::measure(attacks, &options, told).await?;
    report.fleet = hostile::fleet(&options).await?;
    Ok(())
}

async fn run_all(args: &Args, program: PathBuf, report: &mut Report) -> Result<()> {
    let sesame = Sesame { program, arguments: args.serve.clone() };
    let mut implementations: Vec<&dyn Implementation> = vec![&sesame];
    let contour = Contour { as_shipped: args.as_shipped };
    if args.peers {
        implementations.push(&contour);
    }
    let options = Options {
        samples: args.samples,
        writes: args.writes,
        clients: args.clients,
        returning: args.returning,
        clients_at: args.clients_at,
        starts: args.starts.max(1),
        editing: Duration::from_secs(args.editing.max(1)),
    };
    // HTTPRoutes and Mappings are compared with Ingresses of the same run.
    let compared: BTreeSet<usize> = args.routes.iter().chain(&args.mappings).copied().collect();
    let ingresses = if args.sizes.is_empty() { compared.into_iter().collect() } else { args.sizes.clone() };
    let wordings: [(&[usize], Wording); 6] = [
        (&ingresses, Wording::Ingresses),
        (&args.certificates, Wording::Certificates),
        (&args.proxies, Wording::Proxies),
        (&args.protected, Wording::Protected),
        (&args.routes, Wording::Routes),
        (&args.mappings, Wording::Mappings(args.mapping_shape)),
    ];
    let said = wordings.iter().any(|(sizes, _)| !sizes.is_empty());
    let wordings = if said { wordings.to_vec() } else { vec![(&SIZES[..], Wording::Ingresses)] };
    let worlds =
        wordings.into_iter().flat_map(|(sizes, wording)| sizes.iter().map(move |&size| World { size, wording }));
    for world in worlds {
        for implementation in implementations.iter().filter(|it| it.serves(world.wording)) {
            let api = fill::filled(world).await?;
            report.runs.push(measure::measure(*implementation, world, &api, &options).await);
            // What is there is kept, whatever becomes of the runs that follow.
            report.write(&args.out)?;
        }
    }
    Ok(())
}
