//! `sesame verdicts`: everything that is said about objects, with code, field and words.

use std::process::ExitCode;

use anyhow::Result;
use model::Code;
use serde::{Deserialize, Serialize};

use crate::operate::controllers::ControllerFlags;
use crate::operate::print::OutputFlags;
use crate::operate::table::Table;
use crate::operate::{Outcome, ask, exit};
use crate::problem::Problem;

/// Show the verdicts on objects: code, object, field and message
///
/// All replicas report the same, so the first one that answers is used. At most 1,000 verdicts are listed; name a kind, a namespace or
/// an object to see fewer.
///
/// Exit code: 0 if there are no errors, 1 if there are, 2 if no replica could be reached.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only objects of this kind, as in manifests: Ingress, HTTPProxy, HTTPRoute …
    kind: Option<String>,
    /// Only this object: NAMESPACE/NAME, or NAME of what is in no namespace
    #[arg(requires = "kind")]
    object: Option<String>,
    /// Only objects in this namespace
    #[arg(long, value_name = "NAMESPACE", conflicts_with = "object")]
    of_namespace: Option<String>,
    /// Only verdicts with this code, such as SES3001
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    #[command(flatten)]
    controllers: ControllerFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// `/debug/verdicts`.
#[derive(Debug, Deserialize, Serialize)]
struct Page {
    count: usize,
    verdicts: Vec<Row>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Row {
    kind: String,
    #[serde(default)]
    namespace: String,
    name: String,
    field: String,
    severity: String,
    code: String,
    message: String,
    help: String,
}

/// Prints the verdicts.
pub async fn run(args: Args) -> ExitCode {
    exit(print(&args).await)
}

async fn print(args: &Args) -> Result<Outcome> {
    let path = format!("/debug/verdicts?{}", query(args)?);
    let controllers = args.controllers.find().await?;
    let mut pages = ask::answering::<Page>(&controllers, &path).await?;
    let (_, page) = pages.swap_remove(0);
    args.output.print(&page, || text(&page))?;
    Ok(Outcome::of(page.verdicts.iter().any(|verdict| verdict.severity == "error")))
}

fn query(args: &Args) -> Result<String> {
    let mut parts = Vec::new();
    if let Some(kind) = &args.kind {
        parts.push(("kind", label(kind)?.to_owned()));
    }
    if let Some(object) = &args.object {
        let (namespace, name) = object.split_once('/').unwrap_or(("", object));
        parts.extend([("namespace", namespace.to_owned()), ("name", name.to_owned())]);
    }
    parts.extend(args.of_namespace.iter().map(|namespace| ("namespace", namespace.clone())));
    parts.extend(args.code.iter().map(|code| ("code", code.to_ascii_uppercase())));
    Ok(form_urlencoded::Serializer::new(String::new()).extend_pairs(parts).finish())
}

/// The kind as the pages call it: as in manifests, whatever the case, or by its plural.
fn label(kind: &str) -> Result<&'static str> {
    let is_meant =
        |known: &&kinds::Kind| [known.label(), known.plural()].iter().any(|name| name.eq_ignore_ascii_case(kind));
    let known = kinds::kind::ALL.iter().find(is_meant).map(|known| known.label());
    known.ok_or_else(|| Problem::of(Code::CommandLine, format!("Sesame reads no objects of kind {kind}")))
}

fn text(page: &Page) -> String {
    if page.verdicts.is_empty() {
        return "no verdicts for these objects\n".to_owned();
    }
    let mut table = Table::new(["SEVERITY", "CODE", "OBJECT", "FIELD", "MESSAGE"]);
    for row in &page.verdicts {
        let object = match row.namespace.as_str() {
            "" => format!("{} {}", row.kind, row.name),
            namespace => format!("{} {namespace}/{}", row.kind, row.name),
        };
        table.row([row.severity.clone(), row.code.clone(), object, row.field.clone(), row.message.clone()]);
    }
    let rest = page.count - page.verdicts.len();
    let more = if rest > 0 { format!("… and {rest} more\n") } else { String::new() };
    table.text() + &more
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn kinds_go_by_any_of_their_names() {
        for name in ["Ingress", "ingress", "ingresses"] {
            assert_eq!(label(name).unwrap(), "Ingress");
        }
        assert!(label("Ingres").unwrap_err().to_string().contains("no objects of kind Ingres"));
    }
}
