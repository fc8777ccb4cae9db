//! TLSCertificateDelegation of both groups: its status. What it permits is looked up by those who need it ([`resolve::delegation`]).
//!
//! In: one object. Out: a translation that asks for nothing, with what is wrong with the object.

use crate::status;
use kinds::{Kind, TlsCertificateDelegation};
use model::{Code, FieldPath, ObjectRef, Translation, Verdict, VerdictList, status::StatusKind};

/// What is wrong with an object.
pub fn translate(kind: Kind, object: &TlsCertificateDelegation) -> Translation {
    let id = ObjectRef::new(kind, object.meta.namespace.clone(), object.meta.name.clone());
    let mut verdicts = VerdictList::default();
    for fault in object.spec.delegations.faults() {
        verdicts.push(Verdict::new(Code::NotDecodable, id.at(&*fault.path), fault.why.clone()));
    }
    for (index, entry) in object.spec.delegations.good() {
        let why = match &*entry.target_namespaces {
            [] => "names no namespace: the Secret can be used from no namespace",
            [only] if **only == *"*" => continue,
            names if names.iter().any(|name| **name == *"*") => "`*` stands for all namespaces only where it is alone",
            _ => continue,
        };
        let field = FieldPath::root().field("spec").field("delegations").index(index).field("targetNamespaces");
        verdicts.push(Verdict::new(Code::DelegationTargets, id.at(field), why));
    }
    Translation { verdicts: verdicts.into_sorted(), ..Translation::empty(id) }
}

/// The status of TLSCertificateDelegations: Contour's schema has one, and Contour never writes it.
pub const STATUS: StatusKind = status::valid_only(|input| status::valid_facts("TLSCertificateDelegation", input));

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use kinds::kind;
    use model::status::StatusInput;

    #[test]
    fn what_permits_nobody_is_told_on_its_field() {
        let object = serde_json::json!({
            "metadata": { "name": "d", "namespace": "certs" },
            "spec": { "delegations": [
                { "secretName": "a", "targetNamespaces": ["*"] },
                { "secretName": "b", "targetNamespaces": [] },
                { "secretName": "c", "targetNamespaces": ["shop", "*"] },
                { "secretName": 4, "targetNamespaces": [] },
                { "secretName": "e", "targetNamespaces": ["shop"] },
            ]},
        });
        let kind = kind::CONTOUR_TLS_CERTIFICATE_DELEGATION;
        let object = kinds::decode_json(kind, object.to_string().as_bytes()).unwrap().object;
        let translation = translate(kind, object.get::<TlsCertificateDelegation>().unwrap());
        let told: Vec<_> = translation
            .verdicts
            .iter()
            .map(|verdict| (verdict.code, verdict.origin.field.as_str().to_owned()))
            .collect();
        assert_eq!(
            told,
            [
                (Code::DelegationTargets, "spec.delegations[1].targetNamespaces".to_owned()),
                (Code::DelegationTargets, "spec.delegations[2].targetNamespaces".to_owned()),
                (Code::NotDecodable, "spec.delegations[3].secretName".to_owned()),
            ]
        );
        let verdicts = &translation.verdicts;
        let input = StatusInput { verdicts, translated: None, proxies: None, addresses: &[] };
        let facts = (STATUS.facts)(&input);
        assert_eq!(facts.object.conditions[0].reason, "ErrorPresent");
        assert!(facts.object.conditions[0].message.starts_with("SES2002"), "{:?}", facts.object.conditions[0]);
    }
}
