//! One event about one verdict: what `kubectl describe` shows below the object.
//!
//! Its name is made from the object's uid and the verdict, so that there is one event for it, whichever replica writes it and
//! however often it restarts. A problem that returns after it was fixed is counted on the event that exists. The reason is the
//! name of the code in CamelCase; the code begins the note.

use crate::{
    patch::{api_version, collection, gone},
    request_error::RequestError,
};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::ObjectReference,
        events::v1::{Event, EventSeries},
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::{PartialObjectMeta, params::GetParams};
use model::{ObjectRef, Severity, Verdict, status::cut};
use serde_json::json;
use xxhash_rust::xxh3::Xxh3;

/// The reporting controller.
pub const CONTROLLER: &str = "projectsesame.io/sesame";
/// The action of the event.
const ACTION: &str = "Translate";
/// The longest note that the API server accepts.
const NOTE: usize = 1024;

/// An event to write.
#[derive(Clone, Debug)]
pub(crate) struct PendingEvent {
    pub key: ObjectRef,
    /// The object's uid; the API server is asked where it is not known.
    pub uid: Option<String>,
    pub verdict: Verdict,
    /// How many more verdicts about the object have no event, because there are too many.
    pub more: usize,
    /// Whether the verdict is new, and not only known since a restart.
    pub is_new: bool,
}

/// The result of writing an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EventOutcome {
    /// Written, about the object with this uid.
    Written(String),
    /// There is no such object.
    Gone,
    /// The API server denies it, for lack of a right or because it is not valid: another try would be denied as well.
    Denied,
    /// It failed, and is tried again.
    Failed,
}

/// Writes it, about an object of a kind that is served in that version; gives the outcome, and one word for it.
pub(crate) async fn send(
    client: &kube::Client,
    instance: &str,
    version: &'static str,
    it: &PendingEvent,
) -> Result<(EventOutcome, &'static str), RequestError> {
    let uid = match &it.uid {
        Some(uid) => uid.clone(),
        None => match uid(client, version, &it.key).await? {
            Some(uid) => uid,
            None => return Ok((EventOutcome::Gone, "gone")),
        },
    };
    let event = event(it, version, &uid, instance, Timestamp::now());
    let events = Api::<Event>::namespaced(client.clone(), event.metadata.namespace.as_deref().unwrap_or("default"));
    let result = match events.create(&PostParams::default(), &event).await {
        Ok(_) => "created",
        Err(kube::Error::Api(status)) if status.is_already_exists() && it.is_new => {
            count(&events, event.metadata.name.as_deref().unwrap_or_default()).await?;
            "counted"
        }
        Err(kube::Error::Api(status)) if status.is_already_exists() => "known",
        // The namespace is being deleted, and the object with it.
        Err(kube::Error::Api(status))
            if status.is_not_found() || status.is_forbidden() && is_ending(&status.message) =>
        {
            return Ok((EventOutcome::Gone, "gone"));
        }
        Err(error) => return Err(error.into()),
    };
    Ok((EventOutcome::Written(uid), result))
}

fn is_ending(message: &str) -> bool {
    message.contains("because it is being terminated")
}

async fn uid(client: &kube::Client, version: &'static str, key: &ObjectRef) -> Result<Option<String>, RequestError> {
    let request = collection(key, version).get_metadata(&key.name, &GetParams::default());
    match client.request::<PartialObjectMeta>(request.map_err(kube::Error::BuildRequest)?).await {
        Ok(object) => Ok(object.metadata.uid),
        Err(error) => gone(error, key.kind, version).map(|()| None),
    }
}

/// Increments the count of an event that exists.
async fn count(events: &Api<Event>, name: &str) -> kube::Result<()> {
    let known = events.get(name).await?;
    let count = known.series.map_or(2, |series| series.count.saturating_add(1));
    let series = EventSeries { count, last_observed_time: MicroTime(Timestamp::now()) };
    events.patch(name, &PatchParams::default(), &Patch::Merge(json!({ "series": series }))).await?;
    Ok(())
}

/// The event.
pub(crate) fn event(it: &PendingEvent, version: &str, uid: &str, instance: &str, now: Timestamp) -> Event {
    let PendingEvent { key, verdict, .. } = it;
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let type_ = match verdict.severity() {
        Severity::Error | Severity::Warning => "Warning",
        Severity::Note => "Normal",
    };
    let namespace = if key.namespace.is_empty() { "default" } else { &key.namespace };
    Event {
        metadata: ObjectMeta {
            name: Some(name(&key.name, uid, verdict)),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(now)),
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: Some(cut(instance, 128).into_owned()),
        action: Some(ACTION.to_owned()),
        reason: Some(verdict.code.reason().to_owned()),
        type_: Some(type_.to_owned()),
        note: Some(note(verdict, it.more)),
        regarding: Some(ObjectReference {
            api_version: Some(api_version(key.kind, version)),
            kind: Some(key.kind.name().to_owned()),
            namespace: text(&key.namespace),
            name: Some(key.name.to_string()),
            uid: Some(uid.to_owned()),
            // The field is in the note, which is what `kubectl describe` shows; it is not said twice.
            ..ObjectReference::default()
        }),
        ..Event::default()
    }
}

/// The code, the field, the message and what to do; a long message is cut, what to do is kept.
fn note(verdict: &Verdict, more: usize) -> String {
    let field = match verdict.origin.field.as_str() {
        "" => String::new(),
        field => format!(" {field}:"),
    };
    let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
    let head = format!("{}:{field} ", verdict.code);
    let tail = format!("; {}{more}", verdict.code.help());
    let room = NOTE.saturating_sub(head.len() + tail.len());
    cut(&format!("{head}{}{tail}", cut(&verdict.message, room)), NOTE).into_owned()
}

/// The name of the event: the same for the same verdict, on every replica and after every restart.
fn name(object: &str, uid: &str, verdict: &Verdict) -> String {
    let mut hash = Xxh3::new();
    for part in [uid, &verdict.code.to_string(), verdict.origin.field.as_str(), &verdict.message] {
        hash.update(part.as_bytes());
        hash.update(&[0]);
    }
    // Names of objects are names of events; 253 bytes with the hash.
    let object = &object[..object.floor_char_boundary(236)];
    format!("{}.{:016x}", object.trim_end_matches(['.', '-']), hash.digest())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use kinds::kind;
    use model::Code;

    fn pending_event(message: &str) -> PendingEvent {
        let key = ObjectRef::new(kind::INGRESS, "shop", "web");
        let field = "spec.rules[0].http.paths[1].backend.service.port";
        let verdict = Verdict::new(Code::ServicePortNotFound, key.at(field), message);
        PendingEvent { key, uid: None, verdict, more: 0, is_new: true }
    }

    fn made(it: &PendingEvent, uid: &str) -> Event {
        event(it, it.key.kind.version(), uid, "sesame-0", Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn an_event_says_what_is_wrong_where_and_what_to_do() {
        let event = made(&pending_event("Service shop/cart has no port 8081"), "u");
        let field = "spec.rules[0].http.paths[1].backend.service.port";
        let whole = serde_json::to_string(&event).unwrap();
        assert_eq!(whole.matches(field).count(), 1, "the field is said once: {whole}");
        assert_eq!(
            event.note.unwrap(),
            "SES3002: spec.rules[0].http.paths[1].backend.service.port: Service shop/cart has no port 8081; \
         use a port number or name from the Service's spec.ports"
        );
        assert_eq!((event.reason.as_deref(), event.type_.as_deref()), (Some("ServicePortNotFound"), Some("Warning")));
        let regarding = event.regarding.unwrap();
        assert_eq!((regarding.uid.as_deref(), regarding.field_path), (Some("u"), None));
        assert_eq!(regarding.api_version.as_deref(), Some("networking.k8s.io/v1"));
    }

    #[test]
    fn the_same_thing_has_the_same_name() {
        let name = |message: &str, uid: &str| made(&pending_event(message), uid).metadata.name.unwrap();
        assert_eq!(name("a", "u"), name("a", "u"));
        assert_ne!(name("a", "u"), name("b", "u"));
        assert_ne!(name("a", "u"), name("a", "v"));
        let mut long = pending_event("a");
        long.key.name = format!("{}-{}", "x".repeat(235), "y".repeat(17)).into();
        let name = made(&long, "u").metadata.name.unwrap();
        assert!(name.len() <= 253 && !name.contains("-."), "{name}");
    }

    #[test]
    fn a_long_message_leaves_room_for_what_to_do() {
        let mut it = pending_event(&"é".repeat(2_000));
        it.more = 5;
        let note = made(&it, "u").note.unwrap();
        assert!(
            note.len() <= NOTE
                && note.ends_with(
                    " more characters); use a port number or name from the Service's spec.ports (and 5 more)"
                ),
            "{note}"
        );
    }
}
