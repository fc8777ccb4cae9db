//! What is changed about headers, on a route and on the way to one of its services.
//!
//! `Host` is no header like the others: Envoy has its own words for it, and only on a request.

use crate::{
    HttpProxyView, Rejection, Work,
    route::{FieldContext, optional},
};
use kinds::{
    Checked,
    http_proxy::{Route, Service, route::HeadersPolicy},
};
use model::{
    Code, FieldPath, HeaderName, HeaderValue, MutableHeader,
    header::{HeaderError, HeaderFormat, only_request_header},
    route::{HeaderChanges, HostRewrite, Policy},
};
use std::collections::{BTreeMap, BTreeSet};

/// Which headers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Response,
}

/// The changes that a route makes, and what the backend sees as the host.
pub(super) fn route(
    work: &mut Work<'_, impl HttpProxyView>,
    place: &FieldContext<'_>,
    route: &Route,
) -> Result<(Policy, Option<HostRewrite>), Rejection> {
    let own = [("CONTOUR_NAMESPACE", &*place.object.meta.namespace)];
    let mut notes = Vec::new();
    let request = Reader { code: Code::ProxyRequestHeaders, direction: Direction::Request, own: &own };
    let response = Reader { code: Code::ProxyResponseHeaders, direction: Direction::Response, own: &own };
    let field = &place.field;
    let request = request.read(&route.request_headers_policy, field.field("requestHeadersPolicy"), &mut notes);
    let response = response.read(&route.response_headers_policy, field.field("responseHeadersPolicy"), &mut notes);
    notes.into_iter().for_each(|note| work.report(place.subject, note));
    let ((request_headers, host), (response_headers, _)) = (request?, response?);
    Ok((Policy { request_headers, response_headers, ..Policy::default() }, host))
}

/// The changes on the way to a service and back, and what it sees as the host.
pub(super) fn service(
    work: &mut Work<'_, impl HttpProxyView>,
    place: &FieldContext<'_>,
    service: &Service,
) -> Result<(HeaderChanges, HeaderChanges, Option<HostRewrite>), Rejection> {
    let port = service.port.to_string();
    let own = [
        ("CONTOUR_NAMESPACE", &*place.object.meta.namespace),
        ("CONTOUR_SERVICE_NAME", &*service.name),
        ("CONTOUR_SERVICE_PORT", &*port),
    ];
    let mut notes = Vec::new();
    let request = Reader { code: Code::ProxyServiceRequestHeaders, direction: Direction::Request, own: &own };
    let response = Reader { code: Code::ProxyServiceResponseHeaders, direction: Direction::Response, own: &own };
    let field = &place.field;
    let request = request.read(&service.request_headers_policy, field.field("requestHeadersPolicy"), &mut notes);
    let response = response.read(&service.response_headers_policy, field.field("responseHeadersPolicy"), &mut notes);
    notes.into_iter().for_each(|note| work.report(place.subject, note));
    let ((request, host), (response, _)) = (request?, response?);
    let request = work.settings.request_headers.under(request, &own);
    let response = work.settings.response_headers.under(response, &own);
    Ok((request, response, host))
}

struct Reader<'a> {
    code: Code,
    direction: Direction,
    own: &'a [(&'a str, &'a str)],
}

impl Reader<'_> {
    fn read(
        &self,
        policy: &Checked<Option<Box<HeadersPolicy>>>,
        field: FieldPath,
        notes: &mut Vec<Rejection>,
    ) -> Result<(HeaderChanges, Option<HostRewrite>), Rejection> {
        let Some(policy) = optional(policy)? else { return Ok(Default::default()) };
        for (list, count) in [("set", policy.set.len()), ("remove", policy.remove.len())] {
            HeaderChanges::check_count(count).map_err(|why| self.reject(&field.field(list), why))?;
        }
        let mut set = BTreeMap::new();
        let mut host = None;
        for (index, entry) in policy.set.iter().enumerate() {
            let field = field.field("set").index(index);
            let twice = |name: &str| self.reject(&field.field("name"), format!("header {name} is set more than once"));
            let name = match MutableHeader::parse(&entry.name) {
                Ok(name) => name,
                Err(HeaderError::Host) if host.is_some() => return Err(twice("host")),
                Err(HeaderError::Host) => {
                    host = Some(self.host(&entry.value, &field)?);
                    continue;
                }
                Err(error) => return Err(self.reject(&field.field("name"), error.to_string())),
            };
            if set.contains_key(&name) {
                return Err(twice(name.as_str()));
            }
            let field = field.field("value");
            let read = HeaderFormat::read(&entry.value, self.own);
            let read = read.map_err(|error| self.reject(&field, error.to_string()))?;
            for word in read.plain {
                let why = format!("dynamic value `%{word}%` is not supported");
                notes.push(Rejection::new(Code::ProxyNotDynamic, field.clone(), why));
            }
            set.insert(name, read.format);
        }
        let mut remove = BTreeSet::new();
        for (index, name) in policy.remove.iter().enumerate() {
            let field = field.field("remove").index(index);
            let name = MutableHeader::parse(name).map_err(|error| match error {
                HeaderError::Host => self.reject(&field, "the header Host cannot be removed".to_owned()),
                error => self.reject(&field, error.to_string()),
            })?;
            if !remove.insert(name.clone()) {
                return Err(self.reject(&field, format!("header {name} is removed more than once")));
            }
        }
        let (set, remove) = (set.into_iter().collect(), remove.into_iter().collect());
        Ok((HeaderChanges { set, add: Vec::new(), remove }, host))
    }

    fn host(&self, value: &str, field: &FieldPath) -> Result<HostRewrite, Rejection> {
        if self.direction == Direction::Response {
            return Err(self.reject(&field.field("name"), "the header Host cannot be set on a response".to_owned()));
        }
        let reject = |error: HeaderError| self.reject(&field.field("value"), error.to_string());
        match only_request_header(value) {
            Some(name) => HeaderName::parse(name).map(HostRewrite::Header).map_err(reject),
            None => HeaderValue::parse(value).map(HostRewrite::Literal).map_err(reject),
        }
    }

    fn reject(&self, field: &FieldPath, why: String) -> Rejection {
        Rejection::new(self.code, field.clone(), why)
    }
}
