//! What is behind a path: a Service's port, or the reason why there is nothing.

use crate::Context;
use kinds::ingress::{Backend, ServiceBackendPort};
use model::{ClusterId, Code, FieldPath, Verdict};
use resolve::{No, PortRef, View};

/// The cluster; nothing, and a verdict, where there is none.
pub(crate) fn cluster(
    context: &mut Context<'_>,
    view: &mut impl View,
    backend: Option<&Backend>,
    field: &FieldPath,
) -> Option<ClusterId> {
    let found = match backend {
        Some(Backend { service: Some(service), .. }) => {
            let field = field.field("service");
            port(&service.port).map_err(|no| no.at(&context.subject, field.field("port"))).and_then(|port| {
                resolve::backend(view, &context.object.meta.namespace, &service.name, &port)
                    .map_err(|no| no.at(&context.subject, field.field(part(&no))))
            })
        }
        Some(Backend { resource: Some(resource), .. }) => {
            let why = format!("{} `{}` cannot be a backend", resource.kind, resource.name);
            Err(Verdict::new(Code::ResourceBackend, context.subject.at(field.field("resource")), why))
        }
        _ => Err(Verdict::new(Code::IngressBackendMissing, context.subject.at(field.clone()), "there is no backend")),
    };
    found.map_err(|verdict| context.verdicts.push(verdict)).ok()
}

/// Whether the name or the port of the Service is what is wrong.
fn part(no: &No) -> &'static str {
    match no.code {
        Code::ServicePortNotFound | Code::ServicePortNotTcp => "port",
        _ => "name",
    }
}

fn port(port: &ServiceBackendPort) -> Result<PortRef, No> {
    match (&port.name, port.number) {
        (Some(name), None | Some(0)) => Ok(PortRef::Name(name.clone())),
        (None, Some(number)) => u16::try_from(number)
            .map(PortRef::Number)
            .map_err(|_| No::new(Code::ServicePortNotFound, format!("{number} is not a port number"))),
        (None, None) => Err(No::new(Code::ServicePortNotFound, "the port has neither a number nor a name")),
        (Some(_), Some(_)) => Err(No::new(Code::ServicePortNotFound, "the port has both a number and a name")),
    }
}
