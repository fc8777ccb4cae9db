//! Nothing that an operator writes makes Envoy refuse anything: what Envoy would not take is refused by its key, with the whole file.
//!
//! Arbitrary values go into the keys that become filters, tags and runtime values; each file that is accepted is loaded into a real
//! Envoy. The values are the same in every run.

use super::*;
use pipeline::{Pipeline, settings::Bind};
use serde_json::{Map, Value, json};
use testbed::{
    Net,
    cases::{Proxy, object},
    texts::HOSTILE,
};

/// How many files are written.
const FILES: usize = 250;

const NUMBERS: [i64; 10] = [i64::MIN, -1, 0, 1, 2, 100, 101, 65_536, 4_294_967_296, i64::MAX];
const DURATIONS: [&str; 10] = ["0s", "1ns", "1ms", "15s", "-1s", "infinity", "8760h", "99999999h", "5", "s"];

/// A source of choices that is the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    /// One time in six, so that most files have but one or two values that are odd.
    fn is_odd(&mut self) -> bool {
        self.roll(6) == 0
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.roll(list.len())]
    }

    fn text(&mut self, good: &[&str]) -> String {
        match self.is_odd() {
            false => self.of(good).to_owned(),
            true if self.roll(4) == 0 => self.of(&["a", "é", "%41", "(a|b)*"]).repeat(1 + self.roll(3000)),
            true => self.of(HOSTILE).to_owned(),
        }
    }

    fn number(&mut self, good: i64) -> Value {
        if self.is_odd() { self.of(&NUMBERS).into() } else { good.into() }
    }

    fn duration(&mut self) -> Value {
        if self.is_odd() { self.of(&DURATIONS).into() } else { "1s".into() }
    }

    fn flag(&mut self) -> Value {
        (self.roll(2) == 0).into()
    }

    /// Some of the fields.
    fn fields(&mut self, all: Vec<(&str, Value)>) -> Value {
        let some = all.into_iter().filter(|_| self.roll(4) > 0);
        Value::Object(some.map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn list(&mut self, most: usize, make: fn(&mut Dice) -> Value) -> Value {
        (0..self.roll(most + 1)).map(|_| make(self)).collect::<Vec<_>>().into()
    }

    fn map(&mut self, keys: &[&str], values: &[&str]) -> Value {
        let entries = (0..self.roll(4)).map(|_| (self.text(keys), self.text(values).into()));
        Value::Object(entries.collect::<Map<_, _>>())
    }
}

fn runtime(dice: &mut Dice) -> Value {
    let keys = ["some.key", "re2.max_program_size.error_level", "envoy.reloadable_features.x", "overload"];
    dice.map(&keys, &["7", "true", "0.5", "text"])
}

fn tag(dice: &mut Dice) -> Value {
    let name = dice.text(&["one", "two", "three"]);
    match dice.roll(2) {
        0 => json!({ "tagName": name, "literal": dice.text(&["value"]) }),
        _ => json!({ "tagName": name, "requestHeaderName": dice.text(&["x-user", ":path"]) }),
    }
}

fn tracing(dice: &mut Dice) -> Value {
    let fields = vec![
        ("serviceName", dice.text(&["edge"]).into()),
        ("overallSampling", dice.text(&["100", "12.5", "0"]).into()),
        ("clientSampling", dice.text(&["50"]).into()),
        ("randomSampling", dice.text(&["0.01"]).into()),
        ("maxPathTagLength", dice.number(256)),
        ("includePodDetail", dice.flag()),
        ("customTags", dice.list(4, tag)),
    ];
    with_extension(dice.fields(fields))
}

fn header(dice: &mut Dice) -> Value {
    let matched = dice.of(&["exact", "prefix", "suffix", "contains"]);
    json!({ matched: dice.text(&["x-user", "x-allowed-"]) })
}

fn authorization(dice: &mut Dice) -> Value {
    let http = vec![
        ("pathPrefix", dice.text(&["/check"]).into()),
        ("allowedAuthorizationHeaders", dice.list(3, header)),
        ("allowedUpstreamHeaders", dice.list(3, header)),
    ];
    let http = dice.fields(http);
    let is_http = dice.roll(2) == 0;
    let body = vec![
        ("maxRequestBytes", dice.number(1000)),
        ("allowPartialMessage", dice.flag()),
        ("packAsBytes", dice.flag()),
    ];
    let context = if is_http { json!({}) } else { dice.map(&["cluster", "level"], &["test"]) };
    let fields = vec![
        ("failOpen", dice.flag()),
        ("authPolicy", json!({ "disabled": dice.flag(), "context": context })),
        ("responseTimeout", dice.duration()),
        ("withRequestBody", dice.fields(body)),
    ];
    let mut fields = with_extension(dice.fields(fields));
    if is_http {
        fields["serviceType"] = "http".into();
        fields["httpSettings"] = http;
    }
    fields
}

fn entry(dice: &mut Dice) -> Value {
    let value = dice.text(&["a", "b"]);
    let name = dice.text(&["x-user"]);
    match dice.roll(4) {
        0 => json!({ "genericKey": { "key": dice.text(&["key"]), "value": value } }),
        1 => json!({ "requestHeader": { "headerName": name, "descriptorKey": value } }),
        2 => {
            let how = dice.of(&["exact", "notexact", "contains", "notcontains", "present", "regex"]);
            let matched = if how == "present" { true.into() } else { Value::from(dice.text(&["me", "(a|b)"])) };
            let headers = json!([{ "name": name, how: matched }]);
            json!({ "requestHeaderValueMatch": { "headers": headers, "expectMatch": dice.flag(), "value": value } })
        }
        _ => json!({ "remoteAddress": {} }),
    }
}

fn descriptor(dice: &mut Dice) -> Value {
    json!({ "entries": dice.list(3, entry) })
}

fn rate_limits(dice: &mut Dice) -> Value {
    let fields = vec![
        ("domain", dice.text(&["shop"]).into()),
        ("failOpen", dice.flag()),
        ("enableXRateLimitHeaders", dice.flag()),
        ("enableResourceExhaustedCode", dice.flag()),
        ("addNamespace", dice.flag()),
        ("defaultGlobalRateLimitPolicy", json!({ "descriptors": dice.list(3, descriptor) })),
    ];
    with_extension(dice.fields(fields))
}

fn with_extension(mut fields: Value) -> Value {
    fields["extensionService"] = "default/extension".into();
    fields
}

/// Two hosts, and the extension that all keys name.
fn objects() -> Vec<kinds::Object> {
    let of = |api: &str, kind: &str, name: &str, spec: Value| {
        object(
            &json!({ "apiVersion": api, "kind": kind, "metadata": { "name": name, "namespace": "default" }, "spec": spec }),
        )
    };
    let services = json!([{ "name": "web", "port": 80 }]);
    let host = |fqdn: &str| json!({ "virtualhost": { "fqdn": fqdn }, "routes": [{ "services": services }] });
    let rule = json!({ "host": "ingress.example.com", "http": { "paths": [{ "path": "/", "pathType": "Prefix",
        "backend": { "service": { "name": "web", "port": { "number": 80 } } } }] } });
    vec![
        of("v1", "Service", "web", json!({ "ports": [{ "port": 80 }] })),
        of("projectcontour.io/v1", "HTTPProxy", "exact", host("exact.example.com")),
        of("projectcontour.io/v1", "HTTPProxy", "wild", host("*.wild.example.com")),
        of("networking.k8s.io/v1", "Ingress", "ingress", json!({ "rules": [rule] })),
        of(
            "projectcontour.io/v1alpha1",
            "ExtensionService",
            "extension",
            json!({ "protocol": "h2c", "services": services }),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_accepted_is_taken_by_envoy() {
    let address = Net::here().unwrap().address();
    let bound = |mut settings: pipeline::Settings| {
        let bind = |port| Bind { address: address.into(), port };
        (settings.http, settings.https, settings.stats) = (bind(8080), bind(8443), bind(8002));
        settings.admin_port = 0;
        settings
    };
    let mut proxy = Proxy::start("poisoned-settings").await.unwrap();
    let mut pipeline = Pipeline::new(&bound(plan(&[], "").pipeline));
    for object in objects() {
        pipeline.put(&object.key(), Some(object));
    }
    proxy.publish(pipeline.settle().xds).await.unwrap();
    let (mut dice, mut accepted) = (Dice(0x9e37_79b9_7f4a_7c15), 0);
    for _ in 0..FILES {
        let sections = vec![
            ("runtime-settings", runtime(&mut dice)),
            ("tracing", tracing(&mut dice)),
            ("globalExtAuth", authorization(&mut dice)),
            ("rateLimitService", rate_limits(&mut dice)),
        ];
        let file = dice.fields(sections).to_string();
        let Ok(config) = Config::parse(Path::new("sesame.yaml"), &file) else { continue };
        let Ok(plan) = Plan::new(&args(&["--insecure"]), config, |_| Some("sesame-0".to_owned())) else { continue };
        accepted += 1;
        pipeline.set_settings(&bound(plan.pipeline));
        let taken = proxy.publish(pipeline.settle().xds).await;
        taken.unwrap_or_else(|error| panic!("{error}: {file}"));
    }
    println!("{accepted} of {FILES} files were accepted");
    assert!(accepted > FILES / 10 && accepted < FILES, "{accepted}");
    pipeline.self_check().unwrap();
}
