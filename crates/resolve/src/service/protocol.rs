//! What a port speaks: by its `appProtocol`, else by an annotation that lists ports.

use crate::annotation;
use kinds::Meta;
use model::{Code, FieldPath, ObjectRef, Verdict, cluster::Protocol};

const ANNOTATIONS: [(&str, Protocol); 3] = [
    ("upstream-protocol.h2", Protocol::H2),
    ("upstream-protocol.h2c", Protocol::H2c),
    ("upstream-protocol.tls", Protocol::Tls),
];

/// The ports that annotations give a protocol to, by name or number as they were written.
pub fn annotated(meta: &Meta, subject: &ObjectRef, verdicts: &mut Vec<Verdict>) -> Vec<(Box<str>, Protocol)> {
    let mut ports = Vec::new();
    for (name, protocol) in ANNOTATIONS {
        match annotation::get(meta, name) {
            Ok(None) => {}
            Ok(Some(found)) => {
                let listed = found.value.split(',').map(str::trim).filter(|port| !port.is_empty());
                ports.extend(listed.map(|port| (port.into(), protocol)));
            }
            Err(fault) => {
                let field = FieldPath::from(&*fault.path);
                verdicts.push(Verdict::new(Code::AnnotationValue, subject.at(field), fault.why.clone()));
            }
        }
    }
    ports
}

/// The protocol of one port. What `appProtocol` says is final, also where it says something we do not know.
pub fn of(app: Option<&str>, annotated: &[(Box<str>, Protocol)], name: &str, number: u16) -> Protocol {
    if let Some(app) = app {
        return match app {
            "kubernetes.io/h2c" => Protocol::H2c,
            "https" => Protocol::Tls,
            _ => Protocol::Http1,
        };
    }
    let by_name = annotated.iter().find(|(port, _)| !name.is_empty() && **port == *name);
    let by_number = || annotated.iter().find(|(port, _)| port.parse() == Ok(number));
    by_name.or_else(by_number).map_or(Protocol::Http1, |(_, protocol)| *protocol)
}
