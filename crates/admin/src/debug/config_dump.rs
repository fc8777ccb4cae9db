//! `/debug/config_dump`: every resource that proxies are sent, as JSON.
//!
//! It may be hundreds of megabytes, so it is sent as it is made, one resource at a time, on a thread of its own, and
//! to few at once. `?bodies=false` leaves out the resources themselves: what is left are types, names, versions and origins.
//! Secrets are taken out by the names of fields, wherever they stand: a key is a key in a Secret, in a TLS context and in whatever
//! is packed inside a filter. So are the values of headers that carry credentials, by the names of the headers.

use super::{Query, Views};
use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use envoy_api::{Any, json::any_to_json};
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    sync::{Arc, LazyLock},
};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};
use xds::{Entry, Fleet, Kind, Snapshot};

/// How many dumps may be under way at once.
static DUMPS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(2)));
/// How many resources may wait to be sent.
const AHEAD: usize = 16;

pub(super) async fn show(State(views): State<Arc<Views>>, uri: Uri) -> Response {
    let query = Query::from(&uri);
    let kinds = match query.get("type") {
        None => Kind::ALL.to_vec(),
        Some(label) => match Kind::from_label(label) {
            Some(kind) => vec![kind],
            None => return (StatusCode::BAD_REQUEST, format!("no type {label}\n")).into_response(),
        },
    };
    let Ok(permit) = DUMPS.clone().try_acquire_owned() else {
        return (StatusCode::TOO_MANY_REQUESTS, "other dumps are being made; try again\n").into_response();
    };
    let mut all = views.server.all_acks();
    all.retain(|(fleet, _)| query.fits("fleet", &fleet.to_string()));
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    let snapshots = all.into_iter().filter_map(|(fleet, acks)| Some((fleet, acks.snapshot()?))).collect::<Vec<_>>();
    let (sender, receiver) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        // It ends early when nobody reads any more.
        let has_bodies = query.get("bodies") != Some("false");
        _ = dump(&snapshots, &kinds, query.get("name").unwrap_or_default(), has_bodies, &sender);
    });
    let body = Body::from_stream(ReceiverStream::new(receiver).map(Ok::<_, Infallible>));
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

type Sent = Result<(), mpsc::error::SendError<Bytes>>;

fn dump(
    snapshots: &[(Fleet, Arc<Snapshot>)],
    kinds: &[Kind],
    name: &str,
    has_bodies: bool,
    to: &mpsc::Sender<Bytes>,
) -> Sent {
    to.blocking_send("{\"fleets\":[".into())?;
    for (index, (fleet, snapshot)) in snapshots.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let head = json!({ "fleet": fleet, "generation": snapshot.generation }).to_string();
        let head = format!("{comma}\n{},\"resources\":[", head.trim_end_matches('}'));
        to.blocking_send(head.into())?;
        let entries = kinds.iter().flat_map(|kind| snapshot.table(*kind).iter().map(move |entry| (*kind, entry)));
        let entries = entries.filter(|(_, entry)| entry.name.contains(name));
        for (index, (kind, entry)) in entries.enumerate() {
            let comma = if index == 0 { "" } else { "," };
            to.blocking_send(format!("{comma}\n{}", resource(kind, entry, has_bodies)).into())?;
        }
        to.blocking_send("]}".into())?;
    }
    to.blocking_send("]}\n".into())
}

fn resource(kind: Kind, entry: &Entry, has_body: bool) -> Value {
    let mut view = json!({
        "type": kind.label(),
        "name": &*entry.name,
        "version": format!("{:016x}", entry.version),
    });
    if let Some(origin) = &entry.origin {
        view["origin"] = origin.to_string().into();
    }
    if !has_body {
        return view;
    }
    let any = Any { type_url: kind.type_url().to_owned(), value: entry.body.clone() };
    match any_to_json(&any) {
        Ok(mut value) => {
            redact(&mut value);
            view["resource"] = value;
        }
        Err(error) => view["error"] = error.to_string().into(),
    }
    view
}

/// The fields whose contents nobody may see.
const SECRET: [&str; 7] = [
    "private_key",
    "private_key_provider",
    "password",
    "pkcs12",
    "session_ticket_keys",
    "generic_secret",
    // A set of keys may have symmetric ones in it.
    "local_jwks",
];

/// Words in the names of headers whose values nobody may see.
const CREDENTIALS: [&str; 7] = ["authorization", "cookie", "token", "secret", "password", "api-key", "apikey"];
/// The fields beside such a name that hold the value of the header, or what it is compared with.
const VALUES: [&str; 3] = ["value", "raw_value", "string_match"];

/// What stands in their place.
const REDACTED: &str = "[redacted]";

/// Takes secrets out.
fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let header = fields.get("key").or_else(|| fields.get("name")).and_then(Value::as_str);
            let is_credential = header.is_some_and(|header| {
                let header = header.to_ascii_lowercase();
                CREDENTIALS.iter().any(|word| header.contains(word))
            });
            for (name, value) in fields {
                if SECRET.contains(&name.as_str()) || is_credential && VALUES.contains(&name.as_str()) {
                    *value = REDACTED.into();
                } else {
                    redact(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(redact),
        _ => {}
    }
}
