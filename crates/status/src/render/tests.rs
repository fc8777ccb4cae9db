use super::*;
use model::status::{Finding, Truth};

fn stated(status: Truth, message: &str) -> Scope {
    Scope { conditions: vec![Condition::new("Accepted", status, "Tested", message)], ..Scope::default() }
}

fn facts(object: Scope) -> StatusFacts {
    StatusFacts { object, lists: Vec::new() }
}

/// What an object says that was told so at generation 1.
fn before(status: &str) -> Value {
    json!({ "conditions": [{ "type": "Accepted", "status": status, "reason": "Tested", "message": "before",
        "observedGeneration": 1, "lastTransitionTime": "2024-01-01T00:00:00Z" }] })
}

#[test]
fn the_time_changes_with_the_status_and_with_nothing_else() {
    let later = over(&facts(stated(Truth::True, "after")), &before("True"), 2);
    let condition = &later["conditions"][0];
    assert_eq!(
        (&condition["lastTransitionTime"], &condition["observedGeneration"]),
        (&"2024-01-01T00:00:00Z".into(), &2.into())
    );
    let other = over(&facts(stated(Truth::False, "after")), &before("True"), 2);
    assert!(other["conditions"][0]["lastTransitionTime"].is_null());
}

#[test]
fn a_message_that_does_not_matter_stays_until_something_else_changes() {
    let mut scope = stated(Truth::True, "after");
    scope.conditions[0].message_matters = false;
    let message = |current: &Value, generation| {
        over(&facts(scope.clone()), current, generation)["conditions"][0]["message"].clone()
    };
    assert_eq!(message(&before("True"), 1), "before");
    assert_eq!(message(&before("True"), 2), "after");
    assert_eq!(message(&before("False"), 1), "after");
}

#[test]
fn a_kept_condition_stays_for_its_generation() {
    let kept = facts(Scope { kept: vec!["Accepted"], ..Scope::default() });
    assert_eq!(over(&kept, &before("True"), 1), before("True"));
    assert_eq!(over(&kept, &before("True"), 2), json!({}));
    assert_eq!(status(&kept, 1), json!({}));
}

#[test]
fn an_initial_condition_takes_back_nothing_that_holds_for_the_generation() {
    let unknown = Condition::new("Accepted", Truth::Unknown, "Pending", "Waiting.");
    let initial = facts(Scope { initial: vec![unknown], ..Scope::default() });
    assert_eq!(over(&initial, &before("True"), 1), before("True"));
    assert_eq!(over(&initial, &before("True"), 2)["conditions"][0]["status"], "Unknown");
    assert_eq!(
        over(&initial, &before("False"), 1)["conditions"][0]["reason"],
        "Pending",
        "the reason of before is over"
    );
    assert_eq!(status(&initial, 1)["conditions"][0]["reason"], "Pending");
}

#[test]
fn every_text_is_bounded() {
    let long = "x".repeat(40_000);
    let mut object = stated(Truth::False, &long);
    let finding = Finding { kind: "TestError", reason: "Long", message: long.clone() };
    object.conditions[0].findings = vec![("errors", vec![finding]), ("warnings", Vec::new())];
    object.values = vec![("description", StatusValue::text(long))];
    let status = status(&facts(object), 1);
    let texts =
        [&status["description"], &status["conditions"][0]["message"], &status["conditions"][0]["errors"][0]["message"]];
    assert!(texts.iter().all(|text| text.as_str().is_some_and(|text| text.len() <= LONGEST)), "{texts:?}");
    assert_eq!(status["conditions"][0]["errors"][0]["status"], "True");
    assert_eq!(status["conditions"][0].get("warnings"), None, "an empty list is left out");
}

#[test]
fn values_have_the_form_of_the_api() {
    let kinds = StatusValue::List(vec![StatusValue::Record(vec![("kind", StatusValue::text("HTTPRoute"))])]);
    let scope = Scope {
        values: vec![("attachedRoutes", StatusValue::Integer(2)), ("supportedKinds", kinds)],
        ..stated(Truth::True, "Accepted.")
    };
    let entry = Entry { identity: vec![("name", StatusValue::text("http"))], scope };
    let addresses = vec![Address::ip("192.0.2.1"), Address::hostname("lb.example")];
    let object = Scope { values: vec![("loadBalancer", StatusValue::LoadBalancer(addresses))], ..Scope::default() };
    let facts = StatusFacts { object, lists: vec![("listeners", vec![entry])] };
    assert_eq!(
        status(&facts, 3),
        json!({
            "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }, { "hostname": "lb.example" }] },
            "listeners": [{
                "name": "http", "attachedRoutes": 2, "supportedKinds": [{ "kind": "HTTPRoute" }],
                "conditions": [{ "type": "Accepted", "status": "True", "reason": "Tested", "message": "Accepted.",
                    "observedGeneration": 3 }],
            }],
        })
    );
}
