//! Keys about the collector that proxies send spans to.

use super::row::{Row, rows};
use super::value::{BOOLEAN, Wrong, boolean, list, name, namespaced, text, whole};
use kinds::{Node, Value};
use model::listener::{Percent, SpanTag, TagValue, Tracing as Settings};
use model::{Code, HeaderName};
use pipeline::extensions::ExtensionName;
use std::sync::Arc;

const PERCENTAGE: &str = "a percentage such as `12.5`";
const WHOLE_PERCENTAGE: &str = "a percentage such as `50`";
const TAGS: &str = "a list of `tagName` with `literal` or `requestHeaderName`";

/// The longest name and the longest literal value of a tag.
const LONGEST: usize = 1024;
/// The most tags.
const MOST_TAGS: usize = 64;
/// The longest path that is not cut: longer ones no request has.
const LONGEST_PATH: u32 = 1 << 20;

/// The tags of the pod, and the variables of Envoy's container that they are taken from, as Contour names them.
const POD: [(&str, &str); 2] = [("podName", "HOSTNAME"), ("podNamespace", "CONTOUR_NAMESPACE")];

/// What the file says about tracing.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracing {
    /// The namespace and the name of the collector's ExtensionService.
    extension: Option<(String, String)>,
    settings: Settings,
    pod_detail: bool,
}

impl Default for Tracing {
    fn default() -> Self {
        Self { extension: None, settings: Settings::default(), pod_detail: true }
    }
}

impl Tracing {
    /// What cannot be together.
    pub fn contradiction(&self) -> Option<String> {
        let is_idle = self.extension.is_none() && *self != Self::default();
        is_idle.then(|| "the ExtensionService is required".to_owned())
    }

    /// Puts it into the settings, if there is a collector. A tag of the operator's stands in place of the pod's of that name.
    pub fn apply(self, settings: &mut pipeline::Settings) {
        let Some((namespace, name)) = self.extension else { return };
        let mut tracing = self.settings;
        let pod = POD.into_iter().filter(|_| self.pod_detail);
        let pod = pod.filter(|(name, _)| tracing.tags.iter().all(|tag| &*tag.name != *name));
        let pod = pod.map(|(name, variable)| SpanTag::new(name, TagValue::Environment(variable.into())));
        tracing.tags = pod.collect::<Vec<_>>().into_iter().chain(tracing.tags).collect();
        let extension = ExtensionName { namespace: namespace.into(), name: name.into() };
        settings.tracing = Some((extension, Arc::new(tracing)));
    }
}

/// The collector, which requests are traced, and what spans say.
pub const TRACING: &[Row] = rows! {
    works("tracing.extensionService" = "tracing.extensionService", "`namespace/name`", "", "ExtensionService of the collector, which speaks OTLP over gRPC; nothing is traced without one", |c, n| c.tracing.extension = namespaced(n)?);
    works("tracing.serviceName" = "tracing.serviceName", "a name", "contour", "`service.name` of spans", |c, n| c.tracing.settings.service_name = name(n)?.into());
    works("tracing.overallSampling" = "tracing.overallSampling", WHOLE_PERCENTAGE, "100", "maximum percentage of requests traced; Envoy takes whole percentages, and `0` traces none (Contour: all)", |c, n| { let (percent, rounded) = whole_percentage(n)?; c.warnings.extend(rounded.map(|why| warning("tracing.overallSampling", &why))); c.tracing.settings.overall = percent });
    works("tracing.clientSampling" = "tracing.clientSampling", WHOLE_PERCENTAGE, "100", "percentage of requests traced whose clients send `x-client-trace-id`; Envoy takes whole percentages", |c, n| { let (percent, rounded) = whole_percentage(n)?; c.warnings.extend(rounded.map(|why| warning("tracing.clientSampling", &why))); c.tracing.settings.client = percent });
    works("tracing.randomSampling" = "tracing.randomSampling", PERCENTAGE, "100", "percentage of all other requests traced, in steps of 0.01", |c, n| { let (percent, rounded) = percentage(n)?; c.warnings.extend(rounded.map(|why| warning("tracing.randomSampling", &why))); c.tracing.settings.random = percent });
    works("tracing.maxPathTagLength" = "tracing.maxPathTagLength", "a number", "256", "maximum length of the path in the tag `http.url`, in bytes", |c, n| c.tracing.settings.max_path = whole(n, 0, LONGEST_PATH)?);
    works("tracing.includePodDetail" = "tracing.includePodDetail", BOOLEAN, "true", "add the tags `podName` and `podNamespace`, from the variables HOSTNAME and CONTOUR_NAMESPACE of Envoy's container", |c, n| c.tracing.pod_detail = boolean(n)?);
    works("tracing.customTags" = "tracing.customTags", TAGS, "[]", "additional tags of spans; one named as a tag of the pod replaces it", |c, n| c.tracing.settings.tags = tags(n)?);
};

fn warning(key: &str, why: &str) -> (Code, String) {
    (Code::SamplingRounded, format!("{key}: {why}"))
}

/// A percentage as proxies take it, and that it is another than what is written, where that is so.
fn percentage(node: &Node<'_>) -> Result<(Percent, Option<String>), Wrong> {
    let text = text(node)?;
    let percent = Percent::parse(&text).map_err(|error| Wrong::new(error.to_string()))?;
    let is_exact = text.parse::<f64>().is_ok_and(|number| number == percent.value());
    Ok((percent, (!is_exact).then(|| format!("`{text}` is used as {percent}"))))
}

/// The same for what Envoy has no fractions of.
fn whole_percentage(node: &Node<'_>) -> Result<(Percent, Option<String>), Wrong> {
    let (percent, rounded) = percentage(node)?;
    let whole = percent.whole();
    if whole == percent { Ok((percent, rounded)) } else { Ok((whole, Some(format!("`{percent}` is used as {whole}")))) }
}

/// Tags, each of another name.
fn tags(node: &Node<'_>) -> Result<Vec<SpanTag>, Wrong> {
    let tags = list(node, tag)?;
    if tags.len() > MOST_TAGS {
        return Err(Wrong::new(format!("there are {} tags; at most {MOST_TAGS} are possible", tags.len())));
    }
    let twice = |index: usize| tags[..index].iter().any(|before| before.name == tags[index].name);
    match (0..tags.len()).find(|index| twice(*index)) {
        Some(index) => {
            Err(Wrong::new(format!("there is another tag `{}`", tags[index].name)).field("tagName").item(index))
        }
        None => Ok(tags),
    }
}

fn tag(node: &Node<'_>) -> Result<SpanTag, Wrong> {
    let Value::Map(entries) = &node.value else {
        return Err(Wrong::new(format!("expected a map, found {}", node.describe())));
    };
    const FIELDS: [&str; 3] = ["tagName", "literal", "requestHeaderName"];
    if let Some((key, _)) = entries.iter().find(|(key, _)| !FIELDS.contains(&&*key.text)) {
        return Err(Wrong::new(format!("unknown key {}", key.text)));
    }
    // What is empty or null is not set, as in Contour.
    let field = |key: &str| -> Result<Option<String>, Wrong> {
        let Some(value) = node.get(key).filter(|value| value.value != Value::Null) else { return Ok(None) };
        let text = text(value).map_err(|wrong| wrong.field(key))?;
        if text.len() > LONGEST {
            return Err(Wrong::new(format!("it has {} bytes; the limit is {LONGEST}", text.len())).field(key));
        }
        Ok(Some(text).filter(|text| !text.is_empty()))
    };
    let [tag_name, literal, header] = FIELDS.map(field);
    let name = tag_name?.ok_or_else(|| Wrong::new("a tag needs a tagName"))?;
    let value = match (literal?, header?) {
        (Some(text), None) => TagValue::Literal(text.into()),
        (None, Some(name)) => {
            let name = HeaderName::parse_matched(&name);
            TagValue::RequestHeader(name.map_err(|error| Wrong::new(error.to_string()).field("requestHeaderName"))?)
        }
        _ => return Err(Wrong::new("exactly one of literal and requestHeaderName is needed")),
    };
    Ok(SpanTag::new(name, value))
}
