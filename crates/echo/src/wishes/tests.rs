#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

fn read(headers: &[(&'static str, &str)]) -> Result<Wishes, BadWish> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().unwrap());
    }
    Wishes::read(&map)
}

#[test]
fn no_headers_are_a_plain_answer() {
    assert_eq!(read(&[("accept", "*/*")]).unwrap(), Wishes::default());
}

#[test]
fn every_wish_is_read() {
    let wishes = read(&[
        ("x-echo-delay", "250ms"),
        ("x-echo-status", "503"),
        ("x-echo-header", "a: 1"),
        ("x-echo-header", "a: 2:3"),
        ("x-echo-trailer", "t:x"),
        ("x-echo-size", "1000"),
        ("x-echo-chunk", "10"),
        ("x-echo-pause", "1m"),
        ("x-echo-reset", "headers"),
        ("x-echo-grpc-status", "14"),
    ])
    .unwrap();
    assert_eq!(wishes.delay, Duration::from_millis(250));
    assert_eq!(wishes.status, Some(StatusCode::SERVICE_UNAVAILABLE));
    let values: Vec<_> = wishes.headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
    assert_eq!(values, [("a", "1"), ("a", "2:3")]);
    assert_eq!(wishes.trailers.len(), 1);
    assert_eq!((wishes.size, wishes.chunk, wishes.pause), (Some(1000), Some(10), Duration::from_secs(60)));
    assert_eq!((wishes.reset, wishes.grpc_status), (Some(Reset::Headers), Some(14)));
}

#[test]
fn a_bad_wish_says_which_and_what_would_do() {
    let bad = |name, value| read(&[(name, value)]).unwrap_err().to_string();
    assert_eq!(bad("x-echo-status", "99"), "x-echo-status: \"99\" is not a status from 200 to 599");
    for (name, value) in [
        ("x-echo-delay", "5"),
        ("x-echo-delay", "11m"),
        ("x-echo-delay", "s"),
        ("x-echo-header", "no colon"),
        ("x-echo-chunk", "0"),
        ("x-echo-reset", "now"),
        ("x-echo-grpc-status", "17"),
    ] {
        assert!(bad(name, value).starts_with(&format!("{name}: ")), "{name}: {value}");
    }
}
