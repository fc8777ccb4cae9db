//! What a file and an object say about tracing.

use super::*;
use model::listener::{Percent, TagValue};

#[test]
fn tracing_is_the_same_in_a_file_and_in_an_object_and_every_key_changes_it() {
    let of_file = |more: &str| plan(&[], &format!("tracing: {{extensionService: edge/otel{more}}}")).pipeline.tracing;
    let of_object = |more: &str| {
        let spec = format!("tracing: {{extensionService: {{namespace: edge, name: otel}}{more}}}");
        plan_of_object(&[], &spec).unwrap().pipeline.tracing
    };
    let tags = |more: &str| {
        let tags = of_file(more).unwrap().1.tags.clone();
        tags.into_iter().map(|tag| (tag.name.to_string(), tag.value)).collect::<Vec<_>>()
    };
    let environment = |name: &str| TagValue::Environment(name.into());
    let pod = [("podName", "HOSTNAME"), ("podNamespace", "CONTOUR_NAMESPACE")];
    let pod = pod.map(|(name, variable)| (name.to_owned(), environment(variable)));
    let usual = of_file("").unwrap().1;
    assert_eq!((&*usual.service_name, usual.max_path), ("contour", 256));
    assert!([usual.overall, usual.client, usual.random].iter().all(|percent| *percent == Percent::ALL));
    assert_eq!(tags(""), pod);
    for more in [
        "",
        ", serviceName: shop",
        ", overallSampling: '10'",
        ", clientSampling: 0",
        ", randomSampling: '0.25'",
        ", maxPathTagLength: 12",
        ", includePodDetail: false",
        ", customTags: [{tagName: team, literal: edge}, {tagName: user, requestHeaderName: X-User}]",
    ] {
        assert_eq!(of_file(more), of_object(more), "{more}");
        assert_eq!(of_file(more) == of_file(""), more.is_empty(), "{more}");
    }
    assert_eq!(tags(", includePodDetail: false"), []);
    let custom = ", customTags: [{tagName: podName, literal: mine}, {tagName: user, requestHeaderName: Host}]";
    let header = TagValue::RequestHeader(model::HeaderName::authority());
    let expected =
        [pod[1].clone(), ("podName".to_owned(), TagValue::Literal("mine".into())), ("user".to_owned(), header)];
    assert_eq!(tags(custom), expected);
    for (key, written, used) in [("overall", "12.5", "12"), ("client", "0.9", "0"), ("random", "0.001", "0")] {
        let plan = plan(&[], &format!("tracing: {{extensionService: edge/otel, {key}Sampling: '{written}'}}"));
        let [(code, text)] = &plan.warnings[..] else { panic!("{:?}", plan.warnings) };
        assert_eq!(*code, Code::SamplingRounded);
        assert_eq!(*text, format!("tracing.{key}Sampling: `{written}` is used as {used}"));
    }
}

#[test]
fn tracing_that_cannot_be_is_refused_at_its_field() {
    for (tracing, field) in [
        ("{serviceName: shop}", "tracing"),
        ("{includePodDetail: false}", "tracing"),
        ("{extensionService: otel}", "tracing.extensionService"),
        ("{extensionService: a/b, serviceName: ''}", "tracing.serviceName"),
        ("{extensionService: a/b, overallSampling: '100.01'}", "tracing.overallSampling"),
        ("{extensionService: a/b, clientSampling: -1}", "tracing.clientSampling"),
        ("{extensionService: a/b, randomSampling: NaN}", "tracing.randomSampling"),
        ("{extensionService: a/b, maxPathTagLength: 4294967296}", "tracing.maxPathTagLength"),
        ("{extensionService: a/b, customTags: {}}", "tracing.customTags"),
        ("{extensionService: a/b, customTags: [a]}", "tracing.customTags[0]"),
        ("{extensionService: a/b, customTags: [{tagName: a}]}", "tracing.customTags[0]"),
        ("{extensionService: a/b, customTags: [{literal: a}]}", "tracing.customTags[0]"),
        ("{extensionService: a/b, customTags: [{tagName: a, literal: ''}]}", "tracing.customTags[0]"),
        (
            "{extensionService: a/b, customTags: [{tagName: a, literal: b, requestHeaderName: c}]}",
            "tracing.customTags[0]",
        ),
        ("{extensionService: a/b, customTags: [{tagName: a, environment: c}]}", "tracing.customTags[0]"),
        (
            "{extensionService: a/b, customTags: [{tagName: a, requestHeaderName: 'x y'}]}",
            "tracing.customTags[0].requestHeaderName",
        ),
        (
            "{extensionService: a/b, customTags: [{tagName: a, literal: b}, {tagName: a, requestHeaderName: c}]}",
            "tracing.customTags[1].tagName",
        ),
    ] {
        let problems = Config::parse(Path::new("sesame.yaml"), &format!("tracing: {tracing}")).unwrap_err();
        let fields: Vec<&str> = problems.iter().map(|problem| &*problem.field).collect();
        assert_eq!(fields, [field], "{tracing}");
    }
    let many: Vec<String> = (0..65).map(|number| format!("{{tagName: t{number}, literal: a}}")).collect();
    for tags in [many.join(", "), format!("{{tagName: a, literal: {}}}", "x".repeat(1025))] {
        let file = format!("tracing: {{extensionService: a/b, customTags: [{tags}]}}");
        assert_eq!(Config::parse(Path::new("sesame.yaml"), &file).unwrap_err().len(), 1);
    }
}
