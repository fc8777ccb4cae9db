//! What flags of several subcommands share: Contour's names for them, and values that are parsed alike.

pub mod emissary;
pub mod objects;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;

use clap::{Command, ValueEnum};
use model::FleetName;
use pipeline::settings;

/// The namespace Sesame is installed in unless told otherwise.
pub const NAMESPACE: &str = "projectsesame";

/// The id of objects of Emissary that name none.
pub const AMBASSADOR_ID: &str = kinds::emissary::DEFAULT_ID;

/// The version of Envoy that this version of Sesame is made for, and tested with.
pub const ENVOY_VERSION: &str = "1.40.0";
/// The image of Envoy.
pub const ENVOY_IMAGE: &str = "docker.io/envoyproxy/envoy:distroless-v1.40.0";
/// The image of this version of Sesame.
pub const SESAME_IMAGE: &str = concat!("ghcr.io/projectsesame/sesame:v", env!("CARGO_PKG_VERSION"));

/// The id that a flag or variable names; one that is empty names none.
pub fn ambassador_id(id: &str) -> Box<str> {
    if id.is_empty() { AMBASSADOR_ID.into() } else { id.into() }
}

/// How virtual hosts are packed into xDS resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Packing {
    /// One RouteConfiguration for each port or filter chain: an edit costs Envoy all of its hosts
    Plain,
    /// One scope for each host: an edit costs Envoy one host
    Scoped,
}

impl From<Packing> for settings::Packing {
    fn from(packing: Packing) -> Self {
        match packing {
            Packing::Plain => Self::Plain,
            Packing::Scoped => Self::Scoped,
        }
    }
}

/// How Envoy loads the certificates of TLS hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Certificates {
    /// On demand where a certificate is valid for one host only, else one filter chain for each certificate
    Auto,
    /// One filter chain for each certificate; supports session resumption and Envoy before 1.38
    PerChain,
    /// One filter chain for all hosts but wildcards; Envoy prefetches their certificates by server name
    OnDemand,
}

impl From<Certificates> for settings::Certificates {
    fn from(certificates: Certificates) -> Self {
        match certificates {
            Certificates::Auto => Self::Auto,
            Certificates::PerChain => Self::PerChain,
            Certificates::OnDemand => Self::OnDemand,
        }
    }
}

/// What is done with objects that ask another controller for protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ForeignProtection {
    /// Report them and serve the object, like Contour
    Warn,
    /// Report them and answer 503
    Refuse,
}

impl From<ForeignProtection> for settings::ForeignProtection {
    fn from(protection: ForeignProtection) -> Self {
        match protection {
            ForeignProtection::Warn => Self::Warn,
            ForeignProtection::Refuse => Self::Refuse,
        }
    }
}

/// Whether the program is called by Contour's name.
pub fn is_called_contour() -> bool {
    let called = std::env::args_os().next().map(std::path::PathBuf::from);
    called.as_deref().and_then(std::path::Path::file_name).is_some_and(|name| name == "contour")
}

/// Ends the program over its flags. In a log, as of a pod with a wrong flag in its manifest, that is one line.
pub fn refuse(error: &clap::Error) -> ! {
    let is_help = error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if error.use_stderr() && !is_help && !std::io::stderr().is_terminal() {
        eprintln!("{}", one_line(&error.render().to_string()));
        std::process::exit(error.exit_code());
    }
    error.exit()
}

/// What is wrong and what was perhaps meant, without how to use the command.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = lines.take_while(|line| !line.starts_with("Usage: ") && !line.starts_with("For more information"));
    let message = lines.fold(String::new(), |message, line| match &*message {
        "" => line.to_owned(),
        // A list follows.
        text if text.ends_with(':') => format!("{text} {line}"),
        text => format!("{text}; {}", line.strip_prefix("tip: ").unwrap_or(line)),
    });
    format!("{message}; see --help")
}

/// Lets every flag and environment variable of ours also go by the name it has in Contour, so that manifests and habits
/// carry over: `--sesame…` as `--contour…`, and `SESAME_…` as `CONTOUR_…` where only that is set.
pub fn with_contour_names(command: Command, is_set: impl Fn(&str) -> bool + Copy) -> Command {
    let command = command.mut_args(|arg| {
        let alias = arg.get_long().and_then(|long| theirs(long, "sesame", "contour"));
        let ours = arg.get_env().and_then(|env| env.to_str()).filter(|env| !is_set(env));
        let env = ours.and_then(|env| theirs(env, "SESAME", "CONTOUR")).filter(|env| is_set(env));
        let arg = match alias {
            Some(alias) => arg.visible_alias(alias),
            None => arg,
        };
        match env {
            Some(env) => arg.env(env),
            None => arg,
        }
    });
    command.mut_subcommands(|subcommand| with_contour_names(subcommand, is_set))
}

/// Replaces our name at the front of a flag or variable by Contour's. The text lives as long as the process: clap keeps
/// names by reference, and the command line is built once.
fn theirs(name: &str, ours: &str, contours: &str) -> Option<&'static str> {
    let rest = name.strip_prefix(ours)?;
    (rest.is_empty() || rest.starts_with(['-', '_'])).then(|| &*format!("{contours}{rest}").leak())
}

/// Names that were written with commas between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(Vec<Box<str>>);

impl std::ops::Deref for Names {
    type Target = [Box<str>];

    fn deref(&self) -> &[Box<str>] {
        &self.0
    }
}

/// Names with commas between them, and blanks around them; nothing at all is no name. As with Contour, what stands beside a
/// comma is a name also where it is empty: `--root-namespaces=,` allows none, and not all.
pub fn names(text: &str) -> Result<Names, std::convert::Infallible> {
    if text.trim().is_empty() {
        return Ok(Names::default());
    }
    Ok(Names(text.split(',').map(|name| name.trim().into()).collect()))
}

/// Objects of one kind, each by namespace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespacedNames(Vec<(Box<str>, Box<str>)>);

impl std::ops::Deref for NamespacedNames {
    type Target = [(Box<str>, Box<str>)];

    fn deref(&self) -> &[(Box<str>, Box<str>)] {
        &self.0
    }
}

/// `namespace/name`, with commas between them and blanks around them; a comma alone is none at all.
pub fn namespaced_names(text: &str) -> Result<NamespacedNames, String> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let parsed = words.map(|word| match word.split_once('/') {
        Some((namespace, name)) if is_label(namespace) && is_label(name) => Ok((namespace.into(), name.into())),
        _ => Err(format!("`{word}` is not written NAMESPACE/NAME")),
    });
    parsed.collect::<Result<_, _>>().map(NamespacedNames)
}

/// `namespace/name`.
pub fn fleet(text: &str) -> Result<FleetName, String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_label(namespace) && is_label(name) => Ok(FleetName::new(namespace, name)),
        _ => Err("a fleet is written NAMESPACE/NAME, as the Gateway it belongs to".to_owned()),
    }
}

/// Lower-case letters, digits and dashes (and dots, which names of objects may have).
fn is_label(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
}
