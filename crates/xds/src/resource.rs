//! One resource: what the caller publishes, and the form in which it is kept.
//!
//! In: a [`Resource`], a message already encoded, with the names it points at and where it came from. Out: an [`Entry`],
//! which has the caller's bytes, not a copy: what goes around them on the wire is written with each response.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

use crate::kind::Kind;
use crate::wire::fields::{Fields, Value};
use crate::wire::put_field;

/// What a response adds to the name and the message of a resource, at most: the type's URL, the version, lengths and tags.
const ENVELOPE: usize = 160;

/// The numbers of `ScopedRouteConfiguration.route_configuration` and `RouteConfiguration.metadata`.
const SCOPE_ROUTES: u32 = 5;
const ROUTES_METADATA: u32 = 17;

/// The bit of a version that says that the resource stands in for another. A client that comes back lists versions and nothing
/// else, to a replica that may never have had them: so it shows whether what the client has is its own.
const STAND_IN: u64 = 1;

/// The name of a resource. Shared, because tables, streams and responses all hold it.
pub type Name = Arc<str>;

/// Where a resource came from. The server only carries it: it is shown in logs and handed back with events.
pub trait ResourceOrigin: Any + fmt::Display + fmt::Debug + Send + Sync {}

impl<T: Any + fmt::Display + fmt::Debug + Send + Sync> ResourceOrigin for T {}

/// Something that a resource points at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ref {
    /// One resource.
    To(Kind, Name),
    /// Every resource whose name starts so: a listener's scopes, which come and go without the listener changing.
    Under(Kind, Name),
}

/// What a resource is to a client that has, under the same name, something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// What everybody is to have.
    #[default]
    Own,
    /// For those who have nothing: whoever has something of its own goes on with that, and counts as in step.
    StandIn,
    /// For nobody: whoever has something goes on with that, and nobody else waits for it.
    Withheld,
}

impl Role {
    /// The version of a resource in this role, of the hash of what it is made of.
    pub(crate) fn version(self, hash: u64) -> u64 {
        if self == Role::StandIn { hash | STAND_IN } else { hash & !STAND_IN }
    }
}

/// A resource as the caller publishes it.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Its type.
    pub kind: Kind,
    /// Its name, unique in its fleet and type.
    pub name: Name,
    /// The encoded message (not wrapped in an `Any`).
    pub body: Bytes,
    /// What it points at.
    pub refs: Vec<Ref>,
    /// Whether an Envoy warms it by something that this server cannot see: health checks or DNS.
    pub warms: bool,
    /// Whether it does nothing: whatever points at its name needs what it was before, so it waits as a removal does.
    pub idle: bool,
    /// Whether it is what everybody is to have.
    pub role: Role,
    /// Where it came from.
    pub origin: Option<Arc<dyn ResourceOrigin>>,
}

impl Resource {
    /// A resource that points at nothing.
    pub fn new(kind: Kind, name: impl Into<Name>, body: impl Into<Bytes>) -> Self {
        let (name, body) = (name.into(), body.into());
        Self { kind, name, body, refs: Vec::new(), warms: false, idle: false, role: Role::Own, origin: None }
    }

    /// A resource that is withheld: who has it in some version keeps that, nobody is sent one.
    pub fn withheld(kind: Kind, name: impl Into<Name>) -> Self {
        Self { role: Role::Withheld, ..Self::new(kind, name, Bytes::new()) }
    }

    /// Says that it only stands in for another that is withheld.
    #[must_use]
    pub fn standing_in(mut self) -> Self {
        self.role = Role::StandIn;
        self
    }

    /// Adds something it points at.
    #[must_use]
    pub fn refers_to(mut self, kind: Kind, name: impl Into<Name>) -> Self {
        self.refs.push(Ref::To(kind, name.into()));
        self
    }

    /// Adds a prefix of names that it points at.
    #[must_use]
    pub fn refers_under(mut self, kind: Kind, prefix: impl Into<Name>) -> Self {
        self.refs.push(Ref::Under(kind, prefix.into()));
        self
    }

    /// Says that Envoy warms it by health checks or DNS.
    #[must_use]
    pub fn warming(mut self) -> Self {
        self.warms = true;
        self
    }

    /// Says that it does nothing.
    #[must_use]
    pub fn idling(mut self) -> Self {
        self.idle = true;
        self
    }

    /// Says where it came from.
    #[must_use]
    pub fn from_origin(mut self, origin: Arc<dyn ResourceOrigin>) -> Self {
        self.origin = Some(origin);
        self
    }
}

/// A resource as it stands in a table.
#[derive(Clone)]
pub struct Entry {
    /// Its name.
    pub name: Name,
    /// The hash of its content (for endpoints: and of the clusters that use them), and whether it stands in for another.
    pub version: u64,
    /// What it points at.
    pub refs: Box<[Ref]>,
    /// Whether Envoy warms it by health checks or DNS.
    pub warms: bool,
    /// Whether it does nothing: see [`Resource::idle`].
    pub idle: bool,
    /// Whether it is what everybody is to have.
    pub role: Role,
    /// Where it came from.
    pub origin: Option<Arc<dyn ResourceOrigin>>,
    /// The encoded message.
    pub body: Bytes,
    /// The marker by which the message differs from others of the same version: see [`Entry::resent`].
    pub(crate) resent: u64,
}

impl Entry {
    pub(crate) fn new(resource: Resource, hash: u64) -> Self {
        let Resource { kind: _, name, body, refs, warms, idle, role, origin } = resource;
        let version = role.version(hash);
        Self { name, version, refs: refs.into_boxed_slice(), warms, idle, role, origin, body, resent: 0 }
    }

    /// The same resource under another name. Every type that can be asked for by an alias has its name in field 1,
    /// and of a field that comes twice the last one holds, so the name is appended instead of decoding the message.
    pub(crate) fn alias(&self, name: &Name) -> Self {
        let mut body = BytesMut::from(&*self.body);
        put_field(&mut body, 1, name.as_bytes());
        let mut hash = Xxh3::new();
        hash.update(&self.version.to_le_bytes());
        hash.update(name.as_bytes());
        let version = self.role.version(hash.digest());
        Self { name: name.clone(), version, body: body.freeze(), ..self.clone() }
    }

    /// The same scope as another message, of the same version: a marker stands in the metadata of its routes, which nothing
    /// reads. Envoy skips a scope whose message is the one that it got last, even where that came in a response that it
    /// rejected and never put to use. Of a message that comes twice the fields are merged, so this is appended. A scope whose
    /// routes come by RDS is left as it is: inline routes would take their place.
    pub(crate) fn resent(&self, marker: u64) -> Self {
        if !self.has_field(SCOPE_ROUTES) {
            return self.clone();
        }
        let wrap = |field: u32, value: &[u8]| {
            let mut message = BytesMut::new();
            put_field(&mut message, field, value);
            message
        };
        // `Metadata.filter_metadata` is a map: an entry with a key and without a value.
        let key = wrap(1, format!("sesame.resent.{marker:x}").as_bytes());
        let routes = wrap(ROUTES_METADATA, &wrap(1, &key));
        let mut body = BytesMut::from(&*self.body);
        put_field(&mut body, SCOPE_ROUTES, &routes);
        Self { body: body.freeze(), resent: marker, ..self.clone() }
    }

    fn has_field(&self, wanted: u32) -> bool {
        let mut fields = Fields::of(&self.body);
        while let Ok(Some((field, value))) = fields.next() {
            if field == u64::from(wanted) && matches!(value, Value::Bytes(_)) {
                return true;
            }
        }
        false
    }

    /// An endpoint set without endpoints, for a name that no table has: the only answer that a state-of-the-world
    /// client understands as "there is nothing, go on". Its version is 0 and never counts as held.
    pub(crate) fn no_endpoints(name: &Name) -> Self {
        let mut body = BytesMut::new();
        put_field(&mut body, 1, name.as_bytes());
        Self::new(Resource::new(Kind::Endpoints, name.clone(), body.freeze()), 0)
    }

    /// The hash of the message alone.
    pub fn content(&self) -> u64 {
        content_version(&self.body)
    }

    /// How many bytes it takes in a response, at most.
    pub fn bytes(&self) -> usize {
        self.name.len() + self.body.len() + ENVELOPE
    }

    /// What this entry adds to the version of a whole table; sums do not depend on order. What is withheld adds nothing.
    pub fn weight(&self) -> u64 {
        if self.role == Role::Withheld { 0 } else { weight(&self.name, self.version) }
    }
}

impl PartialEq for Entry {
    /// Entries are compared under the same name, so the content hash decides.
    fn eq(&self, other: &Self) -> bool {
        self.version == other.version
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{:016x}", self.name, self.version)
    }
}

/// The version of a message by itself.
pub fn content_version(body: &[u8]) -> u64 {
    Role::Own.version(xxh3_64(body))
}

/// Whether a version is that of a resource that stands in for another.
pub(crate) fn is_of_stand_in(version: u64) -> bool {
    version & STAND_IN != 0
}

pub(crate) fn weight(name: &str, version: u64) -> u64 {
    xxh3_64_with_seed(name.as_bytes(), version)
}
