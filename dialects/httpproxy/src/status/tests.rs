use super::*;
use model::ObjectRef;
use model::status::{Address, ProxyCounts, ProxyRefusal};

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
    let of = |proxies: Option<&ProxyState>| {
        let object = facts(&StatusInput { proxies, ..StatusInput::default() }).object;
        let shown = |at: &Condition| format!("{}/{} {}", at.status.word(), at.reason, at.message);
        let of = |all: &[Condition]| all.iter().filter(|it| it.kind == PROGRAMMED).map(shown).collect::<Vec<_>>();
        (of(&object.conditions).join(""), of(&object.initial).join(""), object.kept)
    };
    let stated = |text: &str| (text.to_owned(), String::new(), vec![]);
    let initial = |text: &str| (String::new(), text.to_owned(), vec![]);
    assert_eq!(of(None), (String::new(), String::new(), vec![PROGRAMMED]), "nothing of it is served");
    let pending = "Unknown/Pending Waiting for proxies to acknowledge it.";
    assert_eq!(of(Some(&ProxyState::Pending)), initial(pending));
    assert_eq!(of(Some(&ProxyState::Waiting)), initial(pending));
    let nobody = "False/NoProxies No proxy is connected.";
    assert_eq!(of(Some(&ProxyState::NoProxies { is_lasting: false })), initial(nobody), "what was acknowledged stands");
    assert_eq!(of(Some(&ProxyState::NoProxies { is_lasting: true })), stated(nobody));
    let counts = ProxyCounts { acknowledged: 2, connected: 3 };
    let refusal = ProxyRefusal { node: "envoy-7xk".into(), text: "no".into() };
    assert_eq!(
        of(Some(&ProxyState::acknowledged(counts))),
        stated("True/Programmed Accepted by 2 of 3 connected proxies.")
    );
    assert_eq!(
        of(Some(&ProxyState::Acknowledged { counts, refusal: Some(refusal.into()) })),
        stated("True/PartiallyProgrammed Accepted by 2 of 3 connected proxies; envoy-7xk rejected it: no")
    );
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
