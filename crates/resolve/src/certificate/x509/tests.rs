//! Certificates put together by hand: one element at a time is what BoringSSL takes, or is not.

use super::*;
use rcgen::{CertificateParams, KeyPair};

/// One element of DER.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut element = vec![tag];
    match u8::try_from(length) {
        Ok(short @ 0..=0x7f) => element.push(short),
        Ok(long) => element.extend([0x81, long]),
        Err(_) => element.extend([0x82, u8::try_from(length >> 8).expect("less than 64 kB"), (length & 0xff) as u8]),
    }
    element.extend(content);
    element
}

fn sequence(elements: &[&[u8]]) -> Vec<u8> {
    der(tag::SEQUENCE, &elements.concat())
}

/// The parts of a certificate that tests change.
struct Parts {
    name: Vec<u8>,
    not_after: Vec<u8>,
    extensions: Vec<Vec<u8>>,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            name: attribute(tag::UTF8_STRING, b"name"),
            not_after: der(tag::UTC_TIME, b"300101000000Z"),
            extensions: vec![],
        }
    }
}

impl Parts {
    fn read(&self) -> Option<Usage> {
        let algorithm = sequence(&[&der(tag::OID, &[0x2a, 0x03]), &der(tag::NULL, &[])]);
        let mut body = [
            der(tag::VERSION, &der(tag::INTEGER, &[2])),
            der(tag::INTEGER, &[1]),
            algorithm.clone(),
            sequence(&[&self.name]),
            sequence(&[&der(tag::UTC_TIME, b"200101000000Z"), &self.not_after]),
            sequence(&[&self.name]),
            sequence(&[&algorithm, &der(tag::BIT_STRING, &[0, 1])]),
        ]
        .concat();
        if !self.extensions.is_empty() {
            body.extend(der(tag::EXTENSIONS, &der(tag::SEQUENCE, &self.extensions.concat())));
        }
        read(&sequence(&[&der(tag::SEQUENCE, &body), &algorithm, &der(tag::BIT_STRING, &[0, 1])]))
    }
}

/// A common name of a type.
fn attribute(kind: u8, text: &[u8]) -> Vec<u8> {
    der(tag::SET, &sequence(&[&der(tag::OID, id::COMMON_NAME), &der(kind, text)]))
}

fn named(kind: u8, text: &[u8]) -> bool {
    Parts { name: attribute(kind, text), ..Parts::default() }.read().is_some()
}

fn valid_until(kind: u8, text: &str) -> bool {
    Parts { not_after: der(kind, text.as_bytes()), ..Parts::default() }.read().is_some()
}

fn with_extensions(extensions: Vec<Vec<u8>>) -> Option<Usage> {
    Parts { extensions, ..Parts::default() }.read()
}

fn extension(id: &[u8], critical: Option<&[u8]>, content: &[u8]) -> Vec<u8> {
    let critical = critical.map(|critical| der(tag::BOOLEAN, critical)).unwrap_or_default();
    sequence(&[&der(tag::OID, id), &critical, &der(tag::OCTET_STRING, content)])
}

#[test]
fn strings_of_characters_are_read() {
    for text in ["", "name", "näme", "\u{ffff0}", "\u{fdcf}\u{fdf0}", "\u{10fffd}"] {
        let utf32: Vec<u8> = text.chars().flat_map(|character| u32::from(character).to_be_bytes()).collect();
        let ucs2: Option<Vec<[u8; 2]>> =
            text.chars().map(|character| Some(u16::try_from(u32::from(character)).ok()?.to_be_bytes())).collect();
        assert!(named(tag::UTF8_STRING, text.as_bytes()), "{text:?}");
        assert!(named(tag::UNIVERSAL_STRING, &utf32), "{text:?}");
        assert!(ucs2.is_none_or(|ucs2| named(tag::BMP_STRING, ucs2.as_flattened())), "{text:?}");
    }
}

#[test]
fn what_is_no_character_spoils_a_name() {
    for number in [0xd800, 0xdfff, 0xfdd0, 0xfdef, 0xfffe, 0xffff, 0x1_fffe, 0x10_ffff, 0x11_0000, 0x6e61_6d65] {
        assert!(!named(tag::UNIVERSAL_STRING, &u32::to_be_bytes(number)), "{number:x}");
        if let Ok(short) = u16::try_from(number) {
            assert!(!named(tag::BMP_STRING, &short.to_be_bytes()), "{number:x}");
        }
        if let Some(character) = char::from_u32(number) {
            assert!(!named(tag::UTF8_STRING, character.to_string().as_bytes()), "{number:x}");
        }
    }
    assert!(!named(tag::UTF8_STRING, b"\xed\xa0\x80"), "a surrogate");
    assert!(!named(tag::UTF8_STRING, b"\xc0\x80"), "longer than it need be");
    assert!(!named(tag::UTF8_STRING, b"n\xe4me"), "Latin-1");
    assert!(!named(tag::BMP_STRING, b"abc"));
    assert!(!named(tag::UNIVERSAL_STRING, &[0, 0, 0, 0x61, 0, 0]));
}

/// One bit makes a string of the one type a string of the other.
#[test]
fn a_string_that_is_taken_for_another_type_spoils_a_name() {
    assert!(named(tag::UTF8_STRING, b"root"));
    assert!(!named(tag::UNIVERSAL_STRING, b"root"));
}

/// BoringSSL takes all of these for Latin-1, whatever is in them.
#[test]
fn strings_of_bytes_are_read_whatever_is_in_them() {
    for kind in [tag::NUMERIC_STRING, tag::PRINTABLE_STRING, tag::T61_STRING, tag::IA5_STRING, tag::VISIBLE_STRING] {
        assert!(named(kind, b"a*@\x00\x7f\x80\xff"), "{kind:x}");
    }
}

/// BoringSSL knows more types than anybody has in a name.
#[test]
fn other_types_in_a_name_are_not_read() {
    for kind in [0x00, 0x07, 0x08, 0x09, 0x0b, 0x0d, 0x15, 0x19, 0x1b, 0x1d, 0x2c, 0x8c, 0xac, 0x4c] {
        assert!(!named(kind, b"name"), "{kind:x}");
    }
    assert!(Parts { name: der(tag::SET, &[]), ..Parts::default() }.read().is_none(), "a set without attributes");
}

#[test]
fn values_of_other_types_have_their_form() {
    for (kind, content, is_read) in [
        (tag::BOOLEAN, &[0xff][..], true),
        (tag::BOOLEAN, &[0x01], false),
        (tag::BOOLEAN, &[], false),
        (tag::INTEGER, &[0x00], true),
        (tag::INTEGER, &[0x00, 0x7f], false),
        (tag::INTEGER, &[0xff, 0x80], false),
        (tag::INTEGER, &[], false),
        (tag::ENUMERATED, &[0x80], true),
        (tag::BIT_STRING, &[0x00], true),
        (tag::BIT_STRING, &[0x04, 0xf0], true),
        (tag::BIT_STRING, &[0x04, 0xff], false),
        (tag::BIT_STRING, &[0x08, 0x00], false),
        (tag::BIT_STRING, &[0x01], false),
        (tag::NULL, &[], true),
        (tag::NULL, &[0], false),
        (tag::OID, &[0x2a, 0x86, 0x48], true),
        (tag::OID, &[0x2a, 0x80, 0x48], false),
        (tag::OID, &[0x2a, 0x86], false),
        (tag::OID, &[], false),
    ] {
        assert_eq!(named(kind, content), is_read, "{kind:x} {content:x?}");
    }
}

#[test]
fn times_are_in_utc_and_exist() {
    for (kind, text, is_read) in [
        (tag::UTC_TIME, "491231235959Z", true),
        (tag::UTC_TIME, "500101000000Z", true),
        (tag::UTC_TIME, "000229000000Z", true),
        (tag::UTC_TIME, "010229000000Z", false),
        (tag::UTC_TIME, "010431000000Z", false),
        (tag::UTC_TIME, "010100000000Z", false),
        (tag::UTC_TIME, "010001000000Z", false),
        (tag::UTC_TIME, "010101240000Z", false),
        (tag::UTC_TIME, "010101006000Z", false),
        (tag::UTC_TIME, "010101000060Z", false),
        (tag::UTC_TIME, "0101010000Z", false),
        (tag::UTC_TIME, "010101000000+0100", false),
        (tag::UTC_TIME, "010101000000", false),
        (tag::UTC_TIME, "20010101000000Z", false),
        (tag::GENERALIZED_TIME, "20500101000000Z", true),
        (tag::GENERALIZED_TIME, "99991231235959Z", true),
        (tag::GENERALIZED_TIME, "21000229000000Z", false),
        (tag::GENERALIZED_TIME, "20500101000000.5Z", false),
        (tag::GENERALIZED_TIME, "500101000000Z", false),
        (tag::PRINTABLE_STRING, "500101000000Z", false),
    ] {
        assert_eq!(valid_until(kind, text), is_read, "{kind:x} {text}");
    }
}

#[test]
fn extensions_have_their_form() {
    let other = &[0x2a, 0x03][..];
    let usage = with_extensions(vec![extension(other, None, b"anything")]).expect("an extension that nobody knows");
    assert_eq!(usage, Usage { common_name: true, server_name: false, signs: true, needs_ocsp: false });
    assert!(with_extensions(vec![extension(other, Some(&[0xff]), b"")]).is_some());
    assert!(with_extensions(vec![extension(other, Some(&[0x00]), b"")]).is_some());
    assert!(with_extensions(vec![extension(other, Some(&[0x01]), b"")]).is_none());
    assert!(with_extensions(vec![extension(other, Some(&[]), b"")]).is_none());
    assert!(with_extensions(vec![extension(&[0x80], None, b"")]).is_none());
    assert!(with_extensions(vec![sequence(&[&der(tag::OID, other)])]).is_none(), "without content");
    let twice = sequence(&[&der(tag::OID, other), &der(tag::OCTET_STRING, b""), &der(tag::OCTET_STRING, b"")]);
    assert!(with_extensions(vec![twice]).is_none());
}

#[test]
fn names_of_servers_are_found_once() {
    let names = |names: &[(u8, &[u8])]| {
        let names: Vec<u8> = names.iter().flat_map(|(kind, name)| der(*kind, name)).collect();
        extension(id::SUBJECT_ALTERNATIVE_NAME, None, &der(tag::SEQUENCE, &names))
    };
    let is_server = |extensions| with_extensions(extensions).is_some_and(|usage| usage.server_name);
    assert!(is_server(vec![names(&[(tag::DNS_NAME, b"a.example.com")])]));
    assert!(is_server(vec![names(&[(tag::IP_ADDRESS, &[10, 0, 0, 1])])]));
    assert!(!is_server(vec![names(&[(tag::IP_ADDRESS, &[10, 0, 0])])]));
    assert!(!is_server(vec![names(&[(tag::DNS_NAME, b"\xff.example.com")])]));
    assert!(!is_server(vec![names(&[(tag::DNS_NAME, b"a")]), names(&[(tag::DNS_NAME, b"a")])]), "Envoy finds none");
}

/// Whatever follows an element, or is missing, spoils the certificate.
#[test]
fn certificates_are_read_to_their_last_byte() {
    let keys = KeyPair::generate().expect("a key");
    let whole = CertificateParams::new(vec!["a.example.com".into()]).and_then(|params| params.self_signed(&keys));
    let whole = whole.expect("a certificate").der().to_vec();
    assert!(read(&whole).is_some());
    for length in 0..whole.len() {
        assert!(read(&whole[..length]).is_none(), "{length} bytes");
    }
    assert!(read(&[&whole[..], &[0]].concat()).is_none());
}
