//! What fills the slot for scripts: that of the fleet. Its object is told if proxies refuse it, and what asks for it is answered with 503
//! by those that have no earlier one.

use crate::{emissary::script, resources::Resource};
use engine::Reads;
use envoy::listener::{script as filter, slots::Slot};
use model::PortId;
use prost::Message;
use xds::Kind;

/// The slot of a port, if its fleet has a script.
pub fn filled(id: &PortId, reads: &mut Reads<'_>) -> Option<Resource> {
    let (object, script) = script::of_fleet(id.fleet(), reads)?;
    let message = filter::filled(id, &script);
    let resource = Resource::new(message.name.clone(), &message).in_fleet(id.fleet());
    let closed = || Slot::Script.empty(id).encode_to_vec().into();
    Some(resource.or_stand_in(Kind::Extension, vec![object], Some(&closed), reads))
}
