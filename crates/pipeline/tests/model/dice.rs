//! Arbitrary values: the same ones for the same seed, the nasty ones often.

use std::{fmt::Debug, time::Duration};

use model::{HeaderName, HeaderValue, MutableHeader, Regex, Timeout, header::HeaderFormat, route::Path, timeout};
use proptest::{
    prelude::Rng,
    test_runner::{RngAlgorithm, TestRng},
};
use testbed::texts::HOSTILE;

/// Pieces of patterns.
const PATTERN: [&str; 28] = [
    "a",
    "/",
    ".",
    ".*",
    "+",
    "?",
    "|",
    "^",
    "$",
    "(b)",
    "(?:c)",
    "(?i)",
    "(?P<n>d)",
    "[a-z]",
    "[^/]",
    "[[:alpha:]]",
    "\\d",
    "\\W",
    "\\b",
    "\\A",
    "\\z",
    "\\pL",
    "\\x41",
    "\\.",
    "{2}",
    "{2,5}",
    "{100}",
    "\\-",
];

/// Where values come from.
pub struct Dice(TestRng);

impl Dice {
    pub fn new(seed: u64, world: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&world.to_le_bytes());
        Self(TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
    }

    /// From 0 to before `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end as u64) as usize
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    pub fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.one_in(2).then(|| make(self))
    }

    pub fn list<T>(&mut self, from: usize, to: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = from + self.below(to - from + 1);
        (0..count).map(|_| make(self)).collect()
    }

    /// Small numbers, large ones, and the ends.
    pub fn number(&mut self) -> u32 {
        match self.below(4) {
            0 => self.pick(&[0, 1, 2, 65_535, 65_536, i32::MAX as u32, u32::MAX - 1, u32::MAX]),
            1 => self.0.next_u32(),
            _ => self.below(1000) as u32,
        }
    }

    pub fn between(&mut self, from: u32, to: u32) -> u32 {
        self.number().clamp(from, to)
    }

    pub fn port(&mut self) -> u16 {
        match self.below(3) {
            0 => self.pick(&[1, 80, 65_535]),
            _ => (self.number() % 65_535) as u16 + 1,
        }
    }

    /// Above nothing, up to the longest that is taken anywhere.
    pub fn span(&mut self) -> Duration {
        let nanos = match self.below(3) {
            0 => self.pick(&[1, 999, 999_999, 1_000_000, 999_999_999, timeout::LONGEST.as_nanos() as u64]),
            1 => self.0.next_u64() % timeout::LONGEST.as_nanos() as u64,
            _ => self.0.next_u64() % 100_000_000_000,
        };
        Duration::from_nanos(nanos.max(1))
    }

    pub fn timeout(&mut self) -> Timeout {
        match self.below(4) {
            0 => Timeout::Default,
            1 => Timeout::Infinite,
            _ => Timeout::After(self.span()),
        }
    }

    /// Any text at all.
    pub fn text(&mut self) -> String {
        match self.below(8) {
            0 => {
                let part = self.pick(&["a", "/a", "é", "a.", "%", "%41", "%REQ(a)%"]);
                let longest = if self.one_in(4) { 20_000 } else { 300 };
                part.repeat(1 + self.below(longest))
            }
            1 | 2 => self.list(0, 3, |dice| dice.pick(HOSTILE)).concat(),
            3 => {
                let characters = self.list(0, 8, |dice| char::from_u32(dice.0.next_u32() % 0x11_0000));
                characters.into_iter().flatten().collect()
            }
            _ => self.list(0, 12, |dice| char::from(b' ' + dice.below(95) as u8)).into_iter().collect(),
        }
    }

    /// What can be a name of something: any text but none.
    pub fn name(&mut self) -> String {
        self.until(|dice| Some(dice.text()).filter(|text| !text.is_empty()))
    }

    /// A name as objects have it, mostly: never longer than any can be.
    pub fn object_name(&mut self) -> String {
        if self.one_in(4) {
            self.name().chars().take(63).collect()
        } else {
            self.pick(&["default", "shop", "a-b.c", "x"]).to_owned()
        }
    }

    /// A value that the border lets in.
    pub fn parsed<T, E: Debug>(
        &mut self,
        mut text: impl FnMut(&mut Self) -> String,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> T {
        self.until(|dice| parse(&text(dice)).ok())
    }

    pub fn until<T>(&mut self, mut make: impl FnMut(&mut Self) -> Option<T>) -> T {
        loop {
            if let Some(value) = make(self) {
                return value;
            }
        }
    }

    pub fn path(&mut self) -> Path {
        self.parsed(
            |dice| if dice.one_in(3) { dice.pick(&["/", "/a", "/a/"]).to_owned() } else { format!("/{}", dice.text()) },
            Path::parse,
        )
    }

    pub fn regex(&mut self) -> Regex {
        let text = |dice: &mut Self| match dice.below(5) {
            0 => dice.text(),
            _ => dice.list(0, 6, |dice| dice.pick(&PATTERN)).concat(),
        };
        self.parsed(text, Regex::parse)
    }

    pub fn header_name(&mut self) -> HeaderName {
        self.parsed(Self::header_text, HeaderName::parse)
    }

    /// A header that can be set or taken away.
    pub fn changed_header(&mut self) -> MutableHeader {
        self.parsed(Self::header_text, MutableHeader::parse)
    }

    pub fn header_text(&mut self) -> String {
        match self.below(4) {
            0 => self.text(),
            1 => self
                .pick(&[":method", ":path", ":authority", ":scheme", "Host", "Content-Length", "X-Forwarded-For"])
                .to_owned(),
            _ => format!("x-{}", self.below(1000)),
        }
    }

    pub fn header_value(&mut self) -> HeaderValue {
        self.parsed(Self::text, HeaderValue::parse)
    }

    pub fn header_format(&mut self) -> HeaderFormat {
        let text = |dice: &mut Self| match dice.below(3) {
            0 => dice.text(),
            _ => dice.list(0, 4, |dice| dice.pick(&OPERATORS)).concat(),
        };
        self.parsed(text, |text| HeaderFormat::read(text, &[("OWN", "100%")])).format
    }
}

/// What stands in values of headers, and what only looks as if it might.
const OPERATORS: [&str; 22] = [
    "%DOWNSTREAM_LOCAL_ADDRESS%",
    "%DOWNSTREAM_PEER_CERT_V_START%",
    "%DOWNSTREAM_PEER_URI_SAN%",
    "%TLS_JA3_FINGERPRINT%",
    "%RESPONSE_CODE_DETAILS%",
    "%UPSTREAM_REMOTE_ADDRESS%",
    "%PROTOCOL%",
    "%HOSTNAME%",
    "%OWN%",
    "%REQ(x)%",
    "%REQ(:path?x-b):3%",
    "%REQ(X-a?):99999%",
    "%REQ(:x):0%",
    "%REQ(x):%",
    "%REQ(%",
    "%RESP(x)%",
    "%START_TIME(%s)%",
    "%",
    "%%",
    "text ",
    "é",
    "%NOT_THERE%",
];
