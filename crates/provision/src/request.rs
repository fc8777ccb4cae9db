//! The requests of one fleet: what there is to do about its objects, and doing it.
//!
//! In: the objects as they should be and as they are. Out: the objects as the API server has them afterwards, or a [`Problem`].
//! An object is applied only after it is known to be the Gateway's: one of the same name that somebody else made is never taken
//! over, and never deleted.

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use serde_json::Value;
use status::Leadership;
use status::lease::Permit;
use tokio::time::timeout_at;
use tracing::info;

use crate::drift;
use crate::objects::{AppliedObject, FleetObjects, HASH_ANNOTATION, ObjectKind};
use crate::problem::Problem;

/// What is to be done about the objects of a fleet.
#[derive(Clone, Debug)]
pub enum Work {
    /// These must be applied. The second says whether the object is known to exist, and to be ours.
    Apply(FleetObjects, Vec<(ObjectKind, bool)>),
    /// These must be deleted: namespace, name, and the uid of each.
    Delete(String, String, Vec<(ObjectKind, String)>),
}

/// What became of it.
pub struct Done {
    /// The objects that the API server answered with.
    pub objects: Vec<(ObjectKind, Value)>,
    /// Why it is not all done.
    pub problem: Option<Problem>,
}

/// Whether an object must be applied although it exists.
pub fn must_apply(object: &Value, applied: &AppliedObject) -> bool {
    !has_hash(object, applied) || !drift::has(object, &applied.body)
}

/// Whether it was applied as it should be, whatever became of it since.
pub fn has_hash(object: &Value, applied: &AppliedObject) -> bool {
    object["metadata"]["annotations"][HASH_ANNOTATION].as_str() == Some(&applied.hash)
}

/// Whether an object belongs to the owner with this uid.
pub fn is_owned(object: &Value, uid: &str) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|owner| owner["uid"].as_str() == Some(uid))
}

/// Does the work, as far as it can be done.
pub async fn perform(client: kube::Client, manager: String, leadership: Leadership, work: Work) -> Done {
    let mut done = Done { objects: Vec::new(), problem: None };
    match work {
        Work::Apply(fleet, kinds) => {
            for (kind, is_known) in kinds {
                match apply(&client, &manager, &leadership, &fleet, kind, is_known).await {
                    Ok(Some(object)) => done.objects.push((kind, object)),
                    Ok(None) => {}
                    // A Deployment without its ServiceAccount has no pods: what follows would fail, too.
                    Err(problem) => {
                        done.problem = Some(problem);
                        break;
                    }
                }
            }
        }
        Work::Delete(namespace, name, objects) => {
            for (kind, uid) in objects {
                if let Err(problem) = delete(&client, &leadership, &namespace, &name, kind, uid).await {
                    done.problem = Some(problem);
                }
            }
        }
    }
    done
}

async fn apply(
    client: &kube::Client,
    manager: &str,
    leadership: &Leadership,
    fleet: &FleetObjects,
    kind: ObjectKind,
    is_known: bool,
) -> Result<Option<Value>, Problem> {
    let Some(applied) = fleet.get(kind) else { return Ok(None) };
    let (namespace, name) = (&*fleet.spec.name.namespace, fleet.name.as_str());
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &kind.resource());
    if !is_known {
        let get = in_time(permit(leadership, kind, namespace, name)?, api.get_opt(name), kind, namespace, name);
        let found = get.await?.map_err(|error| Problem::of_request("read", kind, namespace, name, &error))?;
        if found.is_some_and(|object| !is_owned(&value(object), &fleet.spec.owner.uid)) {
            return Err(Problem::taken(kind, namespace, name));
        }
    }
    let parameters = PatchParams::apply(manager).force();
    let patch = Patch::Apply(&applied.body);
    let request = in_time(
        permit(leadership, kind, namespace, name)?,
        api.patch(name, &parameters, &patch),
        kind,
        namespace,
        name,
    );
    let object = request.await?.map_err(|error| Problem::of_request("apply", kind, namespace, name, &error))?;
    info!(fleet = %fleet.spec.name, %kind, name, "applied");
    Ok(Some(value(object)))
}

async fn delete(
    client: &kube::Client,
    leadership: &Leadership,
    namespace: &str,
    name: &str,
    kind: ObjectKind,
    uid: String,
) -> Result<(), Problem> {
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &kind.resource());
    let preconditions = Preconditions { uid: Some(uid), resource_version: None };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    let permit = permit(leadership, kind, namespace, name)?;
    match in_time(permit, api.delete(name, &parameters), kind, namespace, name).await? {
        Ok(_) => {
            info!(namespace, %kind, name, "deleted: its Gateway is gone");
            Ok(())
        }
        // Gone already, or another object by now.
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(error) => Err(Problem::of_request("delete", kind, namespace, name, &error)),
    }
}

fn permit(leadership: &Leadership, kind: ObjectKind, namespace: &str, name: &str) -> Result<Permit, Problem> {
    leadership.permit().ok_or_else(|| Problem::late(kind, namespace, name))
}

async fn in_time<T>(
    permit: Permit,
    request: impl Future<Output = T>,
    kind: ObjectKind,
    namespace: &str,
    name: &str,
) -> Result<T, Problem> {
    timeout_at(permit.until().into(), request).await.map_err(|_| Problem::late(kind, namespace, name))
}

/// An object as JSON, without the list of who wrote what.
pub fn value(mut object: DynamicObject) -> Value {
    object.metadata.managed_fields = None;
    serde_json::to_value(object).unwrap_or_default()
}
