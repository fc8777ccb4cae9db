//! Circuit breakers from a Service's annotations.

use crate::annotation;
use kinds::Meta;
use model::{Code, FieldPath, ObjectRef, Verdict, cluster::CircuitBreakers};

/// Reads the five limits; one that is no number is a finding and stays unset.
pub fn read(meta: &Meta, subject: &ObjectRef, verdicts: &mut Vec<Verdict>) -> CircuitBreakers {
    let mut limit = |name: &str| -> Option<u32> {
        let found = match annotation::get(meta, name) {
            Ok(found) => found?,
            Err(fault) => {
                let field = FieldPath::from(&*fault.path);
                verdicts.push(Verdict::new(Code::AnnotationValue, subject.at(field), fault.why.clone()));
                return None;
            }
        };
        match found.value.trim().parse() {
            Ok(0) => None,
            Ok(limit) => Some(limit),
            Err(_) => {
                let why = format!("`{}` is not a number from 0 to 4294967295", found.value);
                let field = FieldPath::annotation(&found.name);
                verdicts.push(Verdict::new(Code::AnnotationValue, subject.at(field), why));
                None
            }
        }
    };
    CircuitBreakers {
        max_connections: limit("max-connections"),
        max_pending_requests: limit("max-pending-requests"),
        max_requests: limit("max-requests"),
        max_retries: limit("max-retries"),
        per_host_max_connections: limit("per-host-max-connections"),
    }
}
