//! Values for fields: good ones mostly, and such as have hurt others.

use serde_json::{Value, json};
use testbed::texts::HOSTILE;

const NUMBERS: [i64; 16] =
    [i64::MIN, -1, 0, 1, 2, 10, 100, 200, 429, 503, 599, 600, 4096, 65_535, 4_294_967_296, i64::MAX];
const DURATIONS: [&str; 14] =
    ["0", "0s", "1ns", "1ms", "15s", "-1s", "1.5h", "infinity", "infinite", "8760h", "99999999h", "1e3s", "5", "s"];

/// What makes the value of a field.
pub type Make = fn(&mut Dice) -> Value;

/// A source of choices that is the same in every run.
pub struct Dice(u64);

impl Dice {
    /// The choices of a batch.
    pub fn new(seed: u64, batch: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (batch + 1))
    }

    /// Whether something happens that happens once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.roll(times) == 0
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    /// One of a list.
    pub fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.roll(list.len())].clone()
    }

    /// A good value mostly, or anything.
    pub fn text(&mut self, good: &[&str]) -> Value {
        match self.roll(36) {
            0..34 => self.of(good).into(),
            34 => self.of(HOSTILE).into(),
            _ => {
                let (part, times) = (self.of(&["a", "/a", "é", "a.", "%41", "(a|b)*"]), 1 + self.roll(9000));
                part.repeat(times).into()
            }
        }
    }

    /// The same, and now and then a value of another type.
    pub fn any(&mut self, good: &[&str]) -> Value {
        if self.once_in(80) { self.wrong() } else { self.text(good) }
    }

    /// A value of a type that no field has.
    pub fn wrong(&mut self) -> Value {
        self.of(&[
            Value::Null,
            true.into(),
            (-1).into(),
            0.5.into(),
            json!([]),
            json!({}),
            json!([[null]]),
            json!({ "a": 1 }),
        ])
    }

    /// A duration, or what may be taken for one.
    pub fn duration(&mut self) -> Value {
        if self.roll(12) == 0 { self.of(&DURATIONS).into() } else { self.text(&["1s", "15s", "infinity"]) }
    }

    /// A good number mostly, or any.
    pub fn number(&mut self, good: &[i64]) -> Value {
        if self.roll(24) == 0 { self.of(&NUMBERS).into() } else { self.of(good).into() }
    }

    /// A list of up to `most` elements.
    pub fn list(&mut self, most: usize, mut one: impl FnMut(&mut Dice) -> Value) -> Value {
        (0..self.roll(most + 1)).map(|_| one(self)).collect::<Vec<_>>().into()
    }

    /// A map in which each field is there with one chance in `rare`.
    pub fn map(&mut self, rare: usize, fields: &[(&str, Make)]) -> Value {
        let mut map = serde_json::Map::new();
        for (name, make) in fields {
            if self.roll(rare) == 0 {
                map.insert((*name).to_owned(), make(self));
            }
        }
        map.into()
    }
}

/// What the choices follow from: the same in every run unless `POISON_SEED` says otherwise.
pub fn seed() -> u64 {
    std::env::var("POISON_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}
