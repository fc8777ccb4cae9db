use super::*;
use model::ObjectRef;
use model::status::Address;

fn verdict(code: Code, field: &str, why: &str) -> Verdict {
    Verdict::new(code, ObjectRef::new(kinds::kind::CONTOUR_HTTP_PROXY, "b", "a").at(field), why)
}

fn of(verdicts: &[Verdict]) -> StatusFacts {
    facts(&StatusInput { verdicts, ..StatusInput::default() })
}

fn text<'f>(facts: &'f StatusFacts, field: &str) -> Option<&'f str> {
    facts.object.values.iter().find(|(name, _)| *name == field).and_then(|(_, value)| match value {
        StatusValue::Text(text) => Some(&**text),
        _ => None,
    })
}

#[test]
fn what_is_valid_says_so_and_where_it_is_served() {
    let addresses = [Address::ip("192.0.2.1")];
    let facts = facts(&StatusInput { addresses: &addresses, ..StatusInput::default() });
    assert_eq!((text(&facts, "currentStatus"), text(&facts, "description")), (Some("valid"), Some("Valid HTTPProxy")));
    assert_eq!(facts.object.values[2], ("loadBalancer", StatusValue::LoadBalancer(addresses.to_vec())));
    let valid = &facts.object.conditions[0];
    assert_eq!((valid.kind, valid.status, valid.reason), ("Valid", Truth::True, "Valid"));
    assert_eq!(valid.message, "Valid HTTPProxy");
    assert_eq!(of(&[]).object.values.len(), 2, "there is no load balancer without addresses");
}

#[test]
fn errors_and_warnings_are_told_by_type_and_reason() {
    let verdicts = [
        verdict(Code::ServiceNotFound, "spec.routes[0].services[0].name", "Service b/x does not exist"),
        verdict(Code::ServiceNotFound, "spec.routes[1].services[0].name", "Service b/y does not exist"),
        verdict(Code::ProxyIgnored, "spec.routes[0].loadBalancerPolicy.strategy", "no strategy"),
        verdict(Code::ProxyTimeout, "spec.routes[2].timeoutPolicy.response", "no duration"),
    ];
    let facts = of(&verdicts);
    assert_eq!(text(&facts, "currentStatus"), Some("invalid"));
    let first = "SES3001: spec.routes[0].services[0].name: Service b/x does not exist (and 2 more, see errors)";
    assert_eq!(text(&facts, "description"), Some(first));
    let valid = &facts.object.conditions[0];
    assert_eq!((valid.status, valid.reason, &*valid.message), (Truth::False, "ErrorPresent", first));
    let finding = |kind, reason, message: &str| Finding { kind, reason, message: message.to_owned() };
    let errors = vec![
        finding("RouteError", "TimeoutPolicyNotValid", "SES5036: spec.routes[2].timeoutPolicy.response: no duration"),
        finding(
            "ServiceError",
            "ServiceUnresolvedReference",
            "SES3001: spec.routes[0].services[0].name: Service b/x does not exist; \
             SES3001: spec.routes[1].services[0].name: Service b/y does not exist",
        ),
    ];
    assert_eq!(valid.findings[0], ("errors", errors));
    assert_eq!((valid.findings[1].0, valid.findings[1].1[0].reason), ("warnings", "IgnoredField"));
    assert_eq!(text(&of(&verdicts[2..3]), "currentStatus"), Some("valid"), "a warning takes nothing away");
}

#[test]
fn an_orphan_says_that_it_is_one() {
    let facts = of(&[verdict(Code::ProxyOrphaned, "spec", "no root HTTPProxy includes it")]);
    assert_eq!(text(&facts, "currentStatus"), Some("orphaned"));
    assert_eq!(facts.object.conditions[0].findings[0].1[0].kind, "Orphaned");
}

#[test]
fn programmed_is_stated_when_it_is_known_and_else_stays_as_it_is() {
    let with = |programmed| facts(&StatusInput { programmed, ..StatusInput::default() }).object;
    assert_eq!((with(None).conditions.len(), with(None).kept), (1, vec![PROGRAMMED]));
    let counts = |acknowledged, connected| {
        let object = with(Some(ProxyCounts { acknowledged, connected }));
        assert!(object.kept.is_empty());
        let condition = object.conditions[1].clone();
        assert_eq!((condition.status, condition.reason), (Truth::True, "Programmed"));
        condition.message
    };
    assert_eq!(counts(3, 3), "Accepted by all 3 connected proxies.");
    assert_eq!(counts(1, 1), "Accepted by the connected proxy.");
    assert_eq!(counts(3, 4), "Accepted by 3 of 4 connected proxies.");
}

#[test]
fn no_message_outgrows_an_object() {
    let verdicts: Vec<Verdict> = (0..10_000)
        .map(|n| verdict(Code::ProxyTimeout, &format!("spec.routes[{n}].timeoutPolicy.response"), "no duration"))
        .collect();
    let message = &of(&verdicts).object.conditions[0].findings[0].1[0].message;
    assert!(message.len() < 10_000, "{}", message.len());
    assert!(message.ends_with(" more"), "{message}");
}
