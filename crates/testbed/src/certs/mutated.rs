//! Certificates and keys that are almost right: changes inside the DER of a PEM text.
//!
//! In: a PEM text and a number. Out: the same text with a bit flipped, or with an element lost, doubled, given another type or
//! filled with something else, its lengths put right again. What a parser does with these shows where two of them differ.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Changes that are the same on each run.
#[derive(Clone, Debug)]
pub struct Mutations(u64);

impl Mutations {
    /// Those that follow from a number.
    pub fn new(seed: u64) -> Mutations {
        Mutations(seed)
    }

    /// A PEM text with one or two changes in one of its blocks, which is DER no longer, or another one.
    pub fn pem(&mut self, pem: &str) -> String {
        let blocks = blocks(pem);
        let chosen = self.roll(blocks.len());
        let mut out = String::new();
        for (at, (label, der)) in blocks.into_iter().enumerate() {
            let der = if at == chosen { self.der(&der) } else { der };
            out.push_str(&format!("-----BEGIN {label}-----\n"));
            for line in BASE64.encode(der).as_bytes().chunks(64) {
                out.push_str(std::str::from_utf8(line).expect("base64 is ASCII"));
                out.push('\n');
            }
            out.push_str(&format!("-----END {label}-----\n"));
        }
        out
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % sides
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.roll(256)).expect("less than 256")
    }

    fn der(&mut self, der: &[u8]) -> Vec<u8> {
        let mut bytes = der.to_vec();
        for _ in 0..=self.roll(2) {
            match parse(&bytes) {
                Some(mut elements) if self.roll(3) != 0 => {
                    disturb(&mut elements, self);
                    bytes = encode(&elements);
                }
                _ if bytes.is_empty() => {}
                _ => {
                    let at = self.roll(bytes.len());
                    bytes[at] ^= 1 << self.roll(8);
                }
            }
        }
        bytes
    }
}

/// The blocks of a PEM text: labels and contents.
fn blocks(pem: &str) -> Vec<(String, Vec<u8>)> {
    let (mut blocks, mut label, mut body) = (Vec::new(), None, String::new());
    for line in pem.lines().map(str::trim) {
        if let Some(begun) = line.strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----")) {
            (label, body) = (Some(begun.to_owned()), String::new());
        } else if line.starts_with("-----END ") {
            let label = label.take().expect("a block ends that has begun");
            blocks.push((label, BASE64.decode(&body).expect("the text is our own")));
        } else {
            body.push_str(line);
        }
    }
    blocks
}

/// An element of DER: what it holds, as bytes or as elements.
enum Element {
    Plain(u8, Vec<u8>),
    Nested(u8, Vec<Element>),
}

fn parse(mut der: &[u8]) -> Option<Vec<Element>> {
    let mut elements = Vec::new();
    while let [tag, first, rest @ ..] = der {
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            _ => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f).min(4))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
        };
        let (body, rest) = rest.split_at_checked(length)?;
        let nested = if tag & 0x20 != 0 { parse(body) } else { None };
        elements.push(match nested {
            Some(inside) => Element::Nested(*tag, inside),
            None => Element::Plain(*tag, body.to_vec()),
        });
        der = rest;
    }
    der.is_empty().then_some(elements)
}

fn encode(elements: &[Element]) -> Vec<u8> {
    let mut out = Vec::new();
    for element in elements {
        let (tag, body) = match element {
            Element::Plain(tag, body) => (*tag, body.clone()),
            Element::Nested(tag, inside) => (*tag, encode(inside)),
        };
        out.push(tag);
        match u8::try_from(body.len()) {
            Ok(length @ 0..=0x7f) => out.push(length),
            _ => {
                out.push(0x83);
                out.extend(&u32::try_from(body.len()).expect("a short text").to_be_bytes()[1..]);
                // As short as it can be.
                let at = out.len() - 3;
                let zeros = out[at..].iter().take_while(|byte| **byte == 0).count().min(2);
                out.drain(at..at + zeros);
                out[at - 1] -= u8::try_from(zeros).expect("at most two");
            }
        }
        out.extend(body);
    }
    out
}

/// Changes one element somewhere inside.
fn disturb(elements: &mut Vec<Element>, dice: &mut Mutations) {
    if elements.is_empty() {
        return;
    }
    let at = dice.roll(elements.len());
    if let Element::Nested(_, inside) = &mut elements[at]
        && !inside.is_empty()
        && dice.roll(6) != 0
    {
        return disturb(inside, dice);
    }
    match (dice.roll(5), &mut elements[at]) {
        (0, _) => drop(elements.remove(at)),
        (1, Element::Plain(tag, body)) => {
            let copy = Element::Plain(*tag, body.clone());
            elements.insert(at, copy);
        }
        (2, Element::Plain(tag, _) | Element::Nested(tag, _)) => {
            const TAGS: [u8; 16] = [1, 2, 3, 4, 5, 6, 10, 12, 19, 22, 23, 24, 30, 48, 49, 0x80];
            *tag = TAGS[dice.roll(TAGS.len())];
        }
        (3, Element::Plain(_, body)) => {
            let length = [0, 1, 2, 13, 15, 20][dice.roll(6)];
            *body = (0..length).map(|_| dice.byte()).collect();
        }
        (_, Element::Plain(_, body)) => match (dice.roll(4), body.len()) {
            (0, _) => body.push(0),
            (1, _) => body.insert(0, [0, 0x80, 0xff][dice.roll(3)]),
            (2, 1..) => drop(body.pop()),
            (_, 1..) => {
                let at = dice.roll(body.len());
                body[at] = dice.byte();
            }
            _ => {}
        },
        (_, Element::Nested(_, inside)) => inside.reverse(),
    }
}
