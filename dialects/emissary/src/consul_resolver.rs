//! ConsulResolver: Consul is not asked yet, and whoever has one is told; Mappings that name it answer 503.

use kinds::{emissary::ConsulResolver, kind};
use model::{Code, ObjectRef, Translation, Verdict};

/// What a ConsulResolver asks for: nothing that is served.
pub fn translate(resolver: &ConsulResolver) -> Translation {
    let subject = ObjectRef::new(kind::CONSUL_RESOLVER, resolver.meta.namespace.clone(), resolver.meta.name.clone());
    let why = "services in Consul are not served yet; Mappings and TCPMappings that name the resolver are refused";
    let verdict = Verdict::new(Code::EmissaryNotServed, subject.at("spec"), why);
    Translation { verdicts: vec![verdict], ..Translation::empty(subject) }
}
