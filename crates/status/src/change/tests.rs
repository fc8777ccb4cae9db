use super::*;
use model::status::{AtomicList, Condition, Entry, StatusValue, Truth};
use serde_json::json;

/// A kind of one controller whose lists merge, as a gateway is.
const MERGED: StatusLayout = StatusLayout {
    fields: &["state", "loadBalancer"],
    conditions: &["Accepted", "Programmed"],
    lists: &[ListLayout { field: "listeners", fields: &["attachedRoutes"], conditions: &["Accepted"], atomic: None }],
    marks: &[
        Mark::TextPrefix("state", "SES"),
        Mark::LoadBalancer("loadBalancer"),
        Mark::Condition("Accepted", &["All is well.", "SES"]),
    ],
};
/// A kind whose one list has entries of several controllers, as a route is.
const SHARED: StatusLayout = StatusLayout {
    lists: &[ListLayout {
        field: "parents",
        fields: &[],
        conditions: &["Accepted", "Partial"],
        atomic: Some(AtomicList { owner: "controllerName", limit: 4 }),
    }],
    ..StatusLayout::EMPTY
};

fn at<'a>(layout: &'a StatusLayout, status: &'a Value, generation: i64) -> Current<'a> {
    Current { layout, status, generation, controller: "us" }
}

fn accepted(status: Truth) -> Scope {
    Scope { conditions: vec![Condition::new("Accepted", status, "Tested", "Tested.")], ..Scope::default() }
}

fn listener(name: &str, routes: i64) -> Entry {
    let values = vec![("attachedRoutes", StatusValue::Integer(routes))];
    Entry { identity: vec![("name", StatusValue::text(name))], scope: Scope { values, ..accepted(Truth::True) } }
}

fn parent(name: &str, status: Truth) -> Entry {
    let reference = StatusValue::Record(vec![("name", StatusValue::text(name))]);
    Entry { identity: vec![("parentRef", reference)], scope: accepted(status) }
}

fn parents(entries: Vec<Entry>) -> StatusFacts {
    StatusFacts { object: Scope::default(), lists: vec![("parents", entries)] }
}

/// The status after a change, with the times that the writer puts in; operations are applied as RFC 6902 has it.
fn after(change: Option<Change>, mut status: Value) -> Value {
    let put_time = |value: &mut Value| {
        for condition in value["conditions"].as_array_mut().into_iter().flatten() {
            if condition["lastTransitionTime"].is_null() {
                condition["lastTransitionTime"] = "2024-01-01T00:00:00Z".into();
            }
        }
    };
    match change.expect("something must be written") {
        Change::Apply(mut applied) => {
            put_time(&mut applied);
            applied["listeners"].as_array_mut().into_iter().flatten().for_each(put_time);
            applied
        }
        Change::Withdraw(_) => Value::Null,
        Change::Patch(operations) => {
            for operation in operations {
                apply(&operation, &mut status);
            }
            status["parents"].as_array_mut().into_iter().flatten().for_each(put_time);
            status
        }
    }
}

fn apply(operation: &Value, status: &mut Value) {
    let path = operation["path"].as_str().and_then(|path| path.strip_prefix("/status")).expect("only the status");
    let Some((parent, last)) = path.rsplit_once('/') else {
        *status = operation["value"].clone();
        return;
    };
    let (op, value) = (operation["op"].as_str().expect("a word"), operation["value"].clone());
    match (status.pointer_mut(parent).expect("what is changed is there"), op) {
        (Value::Array(list), "add") if last == "-" => list.push(value),
        (Value::Array(list), "replace") => list[last.parse::<usize>().expect("a position")] = value,
        (Value::Array(list), "remove") => _ = list.remove(last.parse().expect("a position")),
        (Value::Object(fields), "add") => _ = fields.insert(last.to_owned(), value),
        (Value::Object(fields), "remove") => _ = fields.remove(last).expect("what is removed is there"),
        (there, op) => panic!("{op} at {path} of {there}"),
    }
}

#[test]
fn what_is_said_already_is_not_written() {
    let facts = StatusFacts {
        object: Scope { values: vec![("state", StatusValue::text("ready"))], ..accepted(Truth::True) },
        lists: vec![("listeners", vec![listener("http", 2), listener("https", 0)])],
    };
    let mut status = after(to(&facts, at(&MERGED, &Value::Null, 1)), Value::Null);
    assert_eq!(to(&facts, at(&MERGED, &status, 1)), None);
    // What others wrote, and what an API server shows though nobody wrote it, is no difference.
    status["conditions"].as_array_mut().expect("a list").insert(0, json!({ "type": "Foreign", "status": "True" }));
    status["loadBalancer"] = json!({ "ingress": [] });
    status["unknown"] = json!({ "field": 7 });
    assert_eq!(to(&facts, at(&MERGED, &status, 1)), None);
    // Each of these is one.
    let mut differs = vec![facts.clone(), facts.clone(), facts.clone(), facts.clone()];
    differs[0].lists[0].1[0] = listener("http", 3);
    differs[1].lists[0].1.pop();
    differs[2].object.values.clear();
    differs[3].object.conditions.clear();
    for facts in differs {
        assert!(matches!(to(&facts, at(&MERGED, &status, 1)), Some(Change::Apply(_))), "{facts:?}");
    }
    assert!(to(&facts, at(&MERGED, &status, 2)).is_some(), "a later generation");
}

#[test]
fn what_was_said_about_a_later_generation_stands() {
    let facts = StatusFacts { object: accepted(Truth::False), lists: Vec::new() };
    let status = after(to(&facts, at(&MERGED, &Value::Null, 5)), Value::Null);
    let other = StatusFacts { object: accepted(Truth::True), lists: Vec::new() };
    assert_eq!(to(&other, at(&MERGED, &status, 4)), None);
    assert!(to(&other, at(&MERGED, &status, 5)).is_some());
    let status = after(to(&parents(vec![parent("a", Truth::True)]), at(&SHARED, &Value::Null, 5)), Value::Null);
    assert_eq!(to(&parents(vec![parent("a", Truth::False)]), at(&SHARED, &status, 4)), None);
}

#[test]
fn what_is_no_longer_ours_is_taken_back_if_it_shows_that_we_wrote_it() {
    let ours = [Address::ip("192.0.2.1"), Address::ip("192.0.2.2")];
    let withdraws = |status: Value| to_withdraw(&ours, None, at(&MERGED, &status, 1)).is_some();
    let accepted = |message: &str| json!({ "conditions": [{ "type": "Accepted", "message": message }] });
    assert!(withdraws(accepted("All is well.")) && withdraws(accepted("SES1: it is not")));
    assert!(
        !withdraws(accepted("Waiting for controller")) && !withdraws(json!({ "conditions": [{ "type": "Ready" }] }))
    );
    assert!(withdraws(json!({ "state": "SES1: a" })));
    assert!(withdraws(json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } })));
    assert!(!withdraws(json!({ "state": "ready", "loadBalancer": { "ingress": [{ "ip": "192.0.2.9" }] } })));
    assert!(!withdraws(json!({ "loadBalancer": {} })) && !withdraws(Value::Null));
    // What this process knows counts for more, as far as anything is said.
    let known = |has_ours: bool, status: &Value| to_withdraw(&ours, Some(has_ours), at(&MERGED, status, 1)).is_some();
    for said in [accepted("All is well."), accepted("Fine"), json!({ "listeners": [{ "name": "http" }] })] {
        assert!(known(true, &said) && !known(false, &said), "{said}");
    }
    assert!(!known(true, &json!({ "loadBalancer": {}, "listeners": [], "foreign": 7 })) && !known(true, &Value::Null));
    // One of ours that no longer has anything to say takes back what it said, and only then.
    let nothing = StatusFacts::default();
    assert_eq!(to(&nothing, at(&MERGED, &Value::Null, 1)), None);
    let said = json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } });
    assert!(matches!(to(&nothing, at(&MERGED, &said, 1)), Some(Change::Withdraw(_))));
}

/// An entry of another controller, with values of every sort.
fn foreign(name: &str) -> Value {
    json!({ "parentRef": { "name": name }, "controllerName": "them", "weight": 1.5,
        "conditions": [{ "type": "Accepted", "status": "False", "observedGeneration": 99, "lastTransitionTime": "x" }] })
}

#[test]
fn entries_of_others_stay_where_and_as_they_are() {
    let facts = parents(vec![parent("a", Truth::True), parent("b", Truth::True)]);
    let before = json!({ "parents": [foreign("a"), foreign("b")], "extra": true });
    let mut status = after(to(&facts, at(&SHARED, &before, 1)), before);
    assert_eq!(status["parents"].as_array().map(Vec::len), Some(4));
    assert_eq!((&status["parents"][0], &status["parents"][1]), (&foreign("a"), &foreign("b")));
    assert_eq!((&status["parents"][2]["controllerName"], &status["extra"]), (&"us".into(), &true.into()));
    assert_eq!(to(&facts, at(&SHARED, &status, 1)), None, "it says so already");

    // A foreign entry moves between ours; ours are found where they are.
    let list = status["parents"].as_array_mut().expect("a list");
    list.swap(1, 2);
    // Another controller has put a condition and a field into an entry of ours.
    list[1]["conditions"].as_array_mut().expect("a list").insert(0, json!({ "type": "Checked", "status": "True" }));
    list[1]["note"] = "theirs".into();
    assert_eq!(to(&facts, at(&SHARED, &status, 1)), None);
    let other = parents(vec![parent("a", Truth::False)]);
    let status = after(to(&other, at(&SHARED, &status, 1)), status);
    let names: Vec<_> = status["parents"].as_array().into_iter().flatten().map(|one| &one["controllerName"]).collect();
    assert_eq!(names, ["them", "us", "them"], "b is no longer ours to state");
    assert_eq!((&status["parents"][0], &status["parents"][2]), (&foreign("a"), &foreign("b")));
    let own = &status["parents"][1];
    assert_eq!((&own["note"], &own["conditions"][0]["type"]), (&"theirs".into(), &"Checked".into()));
    assert_eq!((&own["conditions"][1]["type"], &own["conditions"][1]["status"]), (&"Accepted".into(), &"False".into()));

    let gone = after(to_withdraw(&[], None, at(&SHARED, &status, 1)), status);
    assert_eq!(gone["parents"], json!([foreign("a"), foreign("b")]));
    assert_eq!(to_withdraw(&[], None, at(&SHARED, &gone, 1)), None);
}

#[test]
fn a_condition_that_is_no_longer_stated_goes_and_a_foreign_one_stays() {
    let mut both = parent("a", Truth::True);
    both.scope.conditions.push(Condition::new("Partial", Truth::True, "Tested", "Tested."));
    let mut status = after(to(&parents(vec![both]), at(&SHARED, &Value::Null, 1)), Value::Null);
    let conditions = status["parents"][0]["conditions"].as_array_mut().expect("a list");
    conditions.insert(1, json!({ "type": "Checked", "status": "True" }));
    let status = after(to(&parents(vec![parent("a", Truth::True)]), at(&SHARED, &status, 1)), status);
    let kinds: Vec<_> =
        status["parents"][0]["conditions"].as_array().into_iter().flatten().map(|one| &one["type"]).collect();
    assert_eq!(kinds, ["Accepted", "Checked"]);
}

#[test]
fn a_full_list_takes_no_more_entries() {
    let before = json!({ "parents": [foreign("a"), foreign("b"), foreign("c")] });
    let facts = parents(vec![parent("a", Truth::True), parent("b", Truth::True)]);
    let status = after(to(&facts, at(&SHARED, &before, 1)), before);
    assert_eq!(status["parents"].as_array().map(Vec::len), Some(4));
    assert_eq!(to(&facts, at(&SHARED, &status, 1)), None, "what has no room is not tried again and again");
}

#[test]
fn an_entry_that_stands_twice_stands_once_afterwards() {
    let facts = parents(vec![parent("a", Truth::True)]);
    let mut status = after(to(&facts, at(&SHARED, &Value::Null, 1)), Value::Null);
    let twice = status["parents"][0].clone();
    status["parents"].as_array_mut().expect("a list").push(twice);
    let status = after(to(&facts, at(&SHARED, &status, 1)), status);
    assert_eq!(status["parents"].as_array().map(Vec::len), Some(1));
}
