//! GRPCRoute: services and methods of gRPC are paths, `/service/method`, and backends speak HTTP/2.
//!
//! A service alone is a prefix. A method alone is a condition about the path, so that it comes after every service, as the API
//! orders them: by the length of the service, then of the method, then by headers.

use super::{
    Rejection, Work, Wrong, attachment,
    backends::Protocols,
    matches::{self, Requests},
    pieces,
    rule::{self, Rule},
};
use crate::{GatewayView, Settings};
use kinds::{
    GrpcRoute,
    gateway::{
        grpc_route::{GrpcRouteMatch, MethodMatch},
        http_route::ValueMatchType,
    },
    kind,
};
use model::{
    Code, FieldPath, HeaderName, Regex, Translation,
    route::{Conditions, Path, PathMatch, StringMatch, UnavailableAnswer, ValueMatch},
};

/// About how many pieces there are for each of its parents.
pub fn size(object: &GrpcRoute) -> usize {
    pieces::size(&object.spec, |rule| rule.matches.len())
}

/// What is answered for a backend that cannot be used.
const ANSWER: UnavailableAnswer = UnavailableAnswer::ServiceUnavailable;

/// What a GRPCRoute asks for.
pub fn translate(object: &GrpcRoute, view: &mut impl GatewayView, settings: &Settings) -> Translation {
    let mut work = Work::new(kind::GRPC_ROUTE, &object.meta, view, settings);
    let hostnames = attachment::hostnames(&mut work, &object.spec.hostnames);
    let parents =
        attachment::parents(&mut work, &object.spec.parent_refs, &object.spec.use_default_gateways, &hostnames);
    if parents.is_empty() {
        return work.into_translation(Vec::new(), Vec::new());
    }
    let rules = rule::all(&mut work, &object.spec.rules, |work, written, field| {
        let requests = rule::matches(work, &written.matches, &field, grpc);
        let persistence = rule::is_set(&written.session_persistence);
        let parts = rule::Parts {
            filters: &written.filters,
            backends: &written.backend_refs,
            unsupported: persistence.then_some("sessionPersistence"),
            timeouts: None,
            retry: None,
            protocols: Protocols::Grpc,
            answer: ANSWER,
        };
        let done = rule::done(work, &parts, &field);
        Rule::of(work, requests, done, field)
    });
    pieces::translation(work, parents, rules, ANSWER)
}

fn reject(field: &FieldPath, why: impl Into<Box<str>>) -> Rejection {
    Rejection::new(Code::GatewayRouteMatch, field.clone(), why)
}

/// Reads a match.
fn grpc(written: &GrpcRouteMatch, field: &FieldPath, wrong: &mut Wrong) -> Option<Requests> {
    let path = match &written.method {
        Some(method) => wrong.take(path(method, &field.field("method"))),
        None => Some((PathMatch::Prefix(Path::root()), None)),
    };
    let mut headers = matches::headers(&written.headers, &field.field("headers"), wrong);
    let (path, condition) = path?;
    if let Some(regex) = condition {
        let name = HeaderName::parse_matched(":path").map_err(|error| reject(field, error.to_string()));
        let value = ValueMatch::Text { text: StringMatch::Regex(regex), ignore_case: false };
        headers.push(matches::header(wrong.take(name)?, value));
    }
    Some((path, Conditions { headers, ..Conditions::default() }.sorted()))
}

/// The paths of a service and method, and a condition about them where no prefix says it.
fn path(written: &MethodMatch, field: &FieldPath) -> Result<(PathMatch, Option<Regex>), Rejection> {
    let part = |name: &str, text: &Option<Box<str>>| match text.as_deref() {
        Some(text) if text.contains('/') => Err(reject(&field.field(name), "a name of gRPC contains no `/`")),
        text => Ok(text.filter(|text| !text.is_empty()).map(Box::<str>::from)),
    };
    let (service, method) = (part("service", &written.service)?, part("method", &written.method)?);
    let regex = |text: String| Regex::parse(&text).map_err(|error| reject(field, error.to_string()));
    let parsed = |text: String| Path::parse(&text).map_err(|error| reject(field, error.to_string()));
    match written.r#type.as_ref().unwrap_or(&ValueMatchType::Exact) {
        ValueMatchType::Exact => match (service, method) {
            (Some(service), Some(method)) => Ok((PathMatch::Exact(parsed(format!("/{service}/{method}"))?), None)),
            (Some(service), None) => Ok((PathMatch::Prefix(parsed(format!("/{service}/"))?), None)),
            (None, Some(method)) => {
                let text = format!("/[^/]+/{}(\\?.*)?", Regex::literal(&method));
                Ok((PathMatch::Prefix(Path::root()), Some(regex(text)?)))
            }
            (None, None) => Err(reject(field, "service or method must be set")),
        },
        ValueMatchType::RegularExpression => {
            let any = || Box::<str>::from("[^/]+");
            if service.is_none() && method.is_none() {
                return Err(reject(field, "service or method must be set"));
            }
            let text = format!("/(?:{})/(?:{})", service.unwrap_or_else(any), method.unwrap_or_else(any));
            Ok((PathMatch::Regex(regex(text)?), None))
        }
        ValueMatchType::Unknown(word) => {
            Err(reject(&field.field("type"), format!("{word} is neither Exact nor RegularExpression")))
        }
    }
}
