//! `sesame lint -f PATH…`: manifests checked without a cluster, for people, editors and CI.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use model::{Code, Severity};
use pipeline::settings::Bind;
use source::folder::{Input, Limits};

use crate::cmd::serve::read;
use crate::flags::objects::{ObjectFlags, SelfSigned};
use crate::lint::{self, Endpoints, Report, github, json, sarif, text};
use crate::output;
use crate::problem::{self, Coded};
use crate::serve::config::Config;

/// Check manifests without a cluster
///
/// Reads files, and every *.yaml, *.yml and *.json below directories, and reports everything that Sesame would not serve as it is
/// written, with line and column. All paths together are one set of objects: a Service may be in another file than the Ingress
/// that names it.
///
/// Exit code: 0 if nothing is wrong, 1 if something was found, 2 if it could not be checked.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File or directory to check, or `-` for standard input; can be repeated
    #[arg(short = 'f', long = "filename", value_name = "PATH", required = true, num_args = 1..)]
    paths: Vec<PathBuf>,
    /// Output format
    #[arg(short = 'o', long, value_name = "FORMAT", value_enum, default_value = "text")]
    output: Format,
    /// Fail on warnings, too
    #[arg(long)]
    strict: bool,
    /// Print only what makes the check fail, and no summary
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Accept TLS hosts whose Secret does not exist, as `sesame run` does
    #[arg(long)]
    self_signed: bool,
    #[command(flatten)]
    objects: ObjectFlags,
}

/// The form of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text with the line of each finding, and a summary
    Text,
    /// One JSON document, as docs/lint.schema.json describes it
    Json,
    /// SARIF 2.1.0, for code scanning services
    Sarif,
    /// Workflow commands of GitHub Actions
    Github,
}

/// Checks, prints the report to standard output, and gives the exit code.
pub fn run(args: &Args) -> ExitCode {
    let failed = |error: anyhow::Error| {
        problem::log(&error);
        ExitCode::from(2)
    };
    let report = match report(args) {
        Ok(report) => report,
        Err(error) => return failed(error),
    };
    match print(args, &report) {
        Err(error) if !error.is::<output::OutputClosed>() => failed(error),
        _ => code(args, &report),
    }
}

fn report(args: &Args) -> Result<Report> {
    let config = args.objects.config_path.as_deref().map_or_else(|| Ok(Config::default()), read)?;
    let mut settings = config.settings(Bind::any(8002), false);
    let self_signed = if args.self_signed { SelfSigned::Allowed } else { SelfSigned::Refused };
    args.objects.apply(&mut settings, self_signed);
    let inputs: Result<Vec<Input>> = args.paths.iter().map(|path| input(path)).collect();
    lint::check(&inputs?, &settings, Endpoints::MadeByCluster)
}

/// What a path stands for. Pipes are read here, once.
fn input(path: &Path) -> Result<Input> {
    let failed = || format!("{} cannot be read", path.display());
    if path == Path::new("-") {
        let bytes = bounded(io::stdin().lock()).coded(Code::FileNotReadable, failed)?;
        return Ok(Input::Text { bytes, shown: "<stdin>".into() });
    }
    let kind = path.metadata().coded(Code::FileNotReadable, failed)?.file_type();
    if kind.is_dir() || kind.is_file() {
        return Ok(Input::Path(path.to_owned()));
    }
    let bytes = File::open(path).and_then(bounded).coded(Code::FileNotReadable, failed)?;
    Ok(Input::Text { bytes, shown: path.to_owned() })
}

fn bounded(reader: impl Read) -> io::Result<Vec<u8>> {
    let most = Limits::default().file_bytes;
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

fn print(args: &Args, report: &Report) -> Result<()> {
    let quiet;
    let report = if args.quiet {
        let fails = |severity: Severity| severity == Severity::Error || (args.strict && severity == Severity::Warning);
        let findings = report.findings.iter().filter(|finding| fails(finding.severity)).cloned().collect();
        quiet = Report { findings, summary: report.summary, ..Report::default() };
        &quiet
    } else {
        report
    };
    let text = match args.output {
        Format::Text => text::render(report, output::style(io::stdout().is_terminal()), args.quiet),
        Format::Json => json::render(report)?,
        Format::Sarif => sarif::render(report)?,
        Format::Github => github::render(report),
    };
    output::write(Path::new("-"), &text)
}

fn code(args: &Args, report: &Report) -> ExitCode {
    let unreadable = report.findings.iter().any(|finding| finding.code == Code::FileNotReadable);
    match (unreadable, report.summary.errors, report.summary.warnings) {
        (true, ..) => ExitCode::from(2),
        (false, 0, 0) => ExitCode::SUCCESS,
        (false, 0, _) if !args.strict => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    }
}
