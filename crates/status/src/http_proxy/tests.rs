#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::Addresses;
use kinds::kind;
use model::ObjectRef;

fn proxy(generation: i64, status: &Value) -> HttpProxy {
    let object = json!({ "metadata": { "name": "a", "namespace": "b", "generation": generation }, "status": status });
    let decoded = kinds::decode_json(kind::CONTOUR_HTTP_PROXY, object.to_string().as_bytes()).unwrap();
    HttpProxy::clone(decoded.object.get::<HttpProxy>().unwrap())
}

fn verdict(code: Code, field: &str, why: &str) -> Verdict {
    Verdict::new(code, ObjectRef::new(kinds::kind::CONTOUR_HTTP_PROXY, "b", "a").at(field), why)
}

fn addresses(text: &str) -> Vec<LoadBalancerAddress> {
    match text.parse().unwrap() {
        Addresses::Fixed(addresses) => addresses,
        Addresses::Service(_) => unreachable!(),
    }
}

/// What an object says after it was told `change`, with the time that the writer puts in.
fn told(change: &Change) -> Value {
    let Change::Say(status) = change else { panic!("{change:?}") };
    let mut status = status.clone();
    for condition in status["conditions"].as_array_mut().unwrap() {
        if condition["lastTransitionTime"].is_null() {
            condition["lastTransitionTime"] = "2024-01-01T00:00:00Z".into();
        }
    }
    status
}

#[test]
fn what_is_valid_says_so_once() {
    let said = change(&proxy(3, &Value::Null), Some(&[]), &addresses("192.0.2.1"), None).unwrap();
    let status = told(&said);
    assert_eq!(
        status,
        json!({
            "currentStatus": "valid",
            "description": "Valid HTTPProxy",
            "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] },
            "conditions": [{
                "type": "Valid", "status": "True", "reason": "Valid", "message": "Valid HTTPProxy",
                "observedGeneration": 3, "lastTransitionTime": "2024-01-01T00:00:00Z",
            }],
        })
    );
    assert_eq!(change(&proxy(3, &status), Some(&[]), &addresses("192.0.2.1"), None), None);
}

#[test]
fn errors_and_warnings_are_told_by_type_and_reason_in_one_write() {
    let verdicts = [
        verdict(Code::ServiceNotFound, "spec.routes[0].services[0].name", "there is no Service b/x"),
        verdict(Code::ServiceNotFound, "spec.routes[1].services[0].name", "there is no Service b/y"),
        verdict(Code::ProxyIgnored, "spec.routes[0].loadBalancerPolicy.strategy", "no strategy"),
        verdict(Code::ProxyTimeout, "spec.routes[2].timeoutPolicy.response", "no duration"),
    ];
    let said = change(&proxy(1, &Value::Null), Some(&verdicts), &[], None).unwrap();
    let status = told(&said);
    assert_eq!(status["currentStatus"], "invalid");
    let first = "SES3001: spec.routes[0].services[0].name: there is no Service b/x (and 2 more, see errors)";
    assert_eq!(status["description"], first);
    let valid = &status["conditions"][0];
    assert_eq!((&valid["status"], &valid["reason"]), (&"False".into(), &"ErrorPresent".into()));
    assert_eq!(
        valid["errors"],
        json!([
            { "type": "RouteError", "status": "True", "reason": "TimeoutPolicyNotValid",
              "message": "SES5036: spec.routes[2].timeoutPolicy.response: no duration" },
            { "type": "ServiceError", "status": "True", "reason": "ServiceUnresolvedReference",
              "message": "SES3001: spec.routes[0].services[0].name: there is no Service b/x; \
                          SES3001: spec.routes[1].services[0].name: there is no Service b/y" },
        ])
    );
    assert_eq!(valid["warnings"][0]["reason"], "IgnoredField");
    assert_eq!(change(&proxy(1, &status), Some(&verdicts), &[], None), None);
    let warned = change(&proxy(1, &status), Some(&verdicts[2..3]), &[], None).unwrap();
    assert_eq!(told(&warned)["currentStatus"], "valid", "a warning takes nothing away");
}

#[test]
fn an_orphan_says_that_it_is_one() {
    let verdicts = [verdict(Code::ProxyOrphaned, "spec", "no root includes it")];
    let status = told(&change(&proxy(1, &Value::Null), Some(&verdicts), &[], None).unwrap());
    assert_eq!(status["currentStatus"], "orphaned");
    assert_eq!(status["conditions"][0]["errors"][0]["type"], "Orphaned");
}

#[test]
fn the_time_moves_with_the_status_and_with_nothing_else() {
    let verdicts = [verdict(Code::ProxyTimeout, "spec.routes[0]", "no duration")];
    let status = told(&change(&proxy(1, &Value::Null), Some(&verdicts), &[], None).unwrap());
    let Change::Say(later) = change(&proxy(2, &status), Some(&verdicts), &[], None).unwrap() else { unreachable!() };
    assert_eq!(later["conditions"][0]["lastTransitionTime"], "2024-01-01T00:00:00Z");
    assert_eq!(later["conditions"][0]["observedGeneration"], 2);
    let Change::Say(mended) = change(&proxy(2, &status), Some(&[]), &[], None).unwrap() else { unreachable!() };
    assert!(mended["conditions"][0]["lastTransitionTime"].is_null());
}

#[test]
fn foreign_conditions_make_no_difference() {
    let mut status = told(&change(&proxy(1, &Value::Null), Some(&[]), &[], None).unwrap());
    let foreign = json!({ "type": "example.com/Checked", "status": "True", "reason": "Fine", "message": "",
        "lastTransitionTime": "2023-01-01T00:00:00Z" });
    status["conditions"].as_array_mut().unwrap().insert(0, foreign);
    assert_eq!(change(&proxy(1, &status), Some(&[]), &[], None), None);
}

#[test]
fn what_was_said_about_a_later_form_stands() {
    let status = told(&change(&proxy(5, &Value::Null), Some(&[]), &[], None).unwrap());
    let verdicts = [verdict(Code::ProxyTimeout, "spec.routes[0]", "no duration")];
    assert_eq!(change(&proxy(4, &status), Some(&verdicts), &[], None), None);
}

#[test]
fn programmed_is_said_where_it_is_known() {
    let words = |programmed| {
        let status = told(&change(&proxy(1, &Value::Null), Some(&[]), &[], programmed).unwrap());
        let condition = status["conditions"].as_array().unwrap().iter().find(|one| one["type"] == PROGRAMMED).cloned();
        condition.map(|condition| (condition["status"].clone(), condition["reason"].clone()))
    };
    assert_eq!(words(None), None);
    assert_eq!(words(Some(false)), Some(("False".into(), "Pending".into())));
    assert_eq!(words(Some(true)), Some(("True".into(), "Programmed".into())));
}

#[test]
fn what_is_no_longer_ours_is_taken_back_if_we_said_it() {
    let ours = addresses("192.0.2.1");
    let status = told(&change(&proxy(1, &Value::Null), Some(&[]), &ours, None).unwrap());
    assert_eq!(change(&proxy(1, &status), None, &ours, None), Some(Change::Withdraw));
    let theirs = told(&change(&proxy(1, &Value::Null), Some(&[]), &addresses("192.0.2.9"), None).unwrap());
    assert_eq!(change(&proxy(1, &theirs), None, &ours, None), None);
    assert_eq!(change(&proxy(1, &Value::Null), None, &ours, None), None);
}

#[test]
fn no_message_outgrows_an_object() {
    let verdicts: Vec<Verdict> = (0..10_000)
        .map(|n| verdict(Code::ProxyTimeout, &format!("spec.routes[{n}].timeoutPolicy.response"), "no duration"))
        .collect();
    let status = told(&change(&proxy(1, &Value::Null), Some(&verdicts), &[], None).unwrap());
    let message = status["conditions"][0]["errors"][0]["message"].as_str().unwrap();
    assert!(message.len() < 10_000, "{}", message.len());
    assert!(message.ends_with(" more"), "{message}");
}
