//! Whether Envoy's TLS library reads a certificate, and what Envoy looks for in it.
//!
//! In: DER. Out: the parts that decide whether Envoy serves it, or nothing if it does not parse. The rules are BoringSSL's,
//! compared with Envoy 1.40 by mutated certificates: lengths are definite and minimal, nothing is left over,
//! versions agree with what is there, values have the form of their type. Where BoringSSL accepts more than DER allows, this does
//! not. The `x509-parser` crate alone accepts more, and what Envoy cannot read must never be sent: an Envoy that refused a secret
//! aborts when a second listener comes to use it.

pub mod crl;
#[cfg(test)]
mod tests;

/// The tags that certificates are made of.
mod tag {
    pub const BOOLEAN: u8 = 0x01;
    pub const INTEGER: u8 = 0x02;
    pub const BIT_STRING: u8 = 0x03;
    pub const OCTET_STRING: u8 = 0x04;
    pub const NULL: u8 = 0x05;
    pub const OID: u8 = 0x06;
    pub const ENUMERATED: u8 = 0x0a;
    pub const UTF8_STRING: u8 = 0x0c;
    pub const NUMERIC_STRING: u8 = 0x12;
    pub const PRINTABLE_STRING: u8 = 0x13;
    pub const T61_STRING: u8 = 0x14;
    pub const IA5_STRING: u8 = 0x16;
    pub const UTC_TIME: u8 = 0x17;
    pub const GENERALIZED_TIME: u8 = 0x18;
    pub const VISIBLE_STRING: u8 = 0x1a;
    pub const UNIVERSAL_STRING: u8 = 0x1c;
    pub const BMP_STRING: u8 = 0x1e;
    pub const SEQUENCE: u8 = 0x30;
    pub const SET: u8 = 0x31;
    pub const VERSION: u8 = 0xa0;
    pub const ISSUER_ID: u8 = 0x81;
    pub const SUBJECT_ID: u8 = 0x82;
    pub const EXTENSIONS: u8 = 0xa3;
    pub const DNS_NAME: u8 = 0x82;
    pub const URI: u8 = 0x86;
    pub const IP_ADDRESS: u8 = 0x87;
}

/// The object identifiers that are looked for.
mod id {
    pub const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    pub const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
    pub const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
    pub const TLS_FEATURE: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x01, 0x18];
}

/// The TLS extension by which a client asks for an OCSP response; a certificate that lists it must come with one.
const STATUS_REQUEST: &[u8] = &[5];

/// What decides whether Envoy serves a certificate that it can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The subject has a common name.
    pub common_name: bool,
    /// It has an alternative name of a kind that Envoy takes for a server's: DNS name, address or URI.
    pub server_name: bool,
    /// Its key may sign; a certificate that does not list usages leaves that open.
    pub signs: bool,
    /// It must come with an OCSP response ("must-staple").
    pub needs_ocsp: bool,
}

/// Reads a certificate.
pub fn read(der: &[u8]) -> Option<Usage> {
    let mut outer = Elements(der);
    let mut certificate = outer.inside(tag::SEQUENCE)?;
    outer.end()?;
    let body = certificate.inside(tag::SEQUENCE)?;
    algorithm(certificate.inside(tag::SEQUENCE)?)?;
    bit_string(certificate.take(tag::BIT_STRING)?)?;
    certificate.end()?;
    to_be_signed(body)
}

fn to_be_signed(mut body: Elements<'_>) -> Option<Usage> {
    let version = match body.optional(tag::VERSION)? {
        None => 0,
        Some(version) => {
            let mut version = Elements(version);
            let number = version.take(tag::INTEGER)?;
            version.end()?;
            match number {
                [number @ 0..=2] => *number,
                _ => return None,
            }
        }
    };
    integer(body.take(tag::INTEGER)?)?;
    algorithm(body.inside(tag::SEQUENCE)?)?;
    name(body.inside(tag::SEQUENCE)?)?;
    let mut validity = body.inside(tag::SEQUENCE)?;
    for _ in ["not before", "not after"] {
        let (kind, text) = validity.any()?;
        time(kind, text)?;
    }
    validity.end()?;
    let common_name = name(body.inside(tag::SEQUENCE)?)?;
    let mut key = body.inside(tag::SEQUENCE)?;
    algorithm(key.inside(tag::SEQUENCE)?)?;
    bit_string(key.take(tag::BIT_STRING)?)?;
    key.end()?;
    for unique in [tag::ISSUER_ID, tag::SUBJECT_ID] {
        if let Some(unique) = body.optional(unique)? {
            bit_string(unique).filter(|()| version >= 1)?;
        }
    }
    let mut usage = Usage { common_name, server_name: false, signs: true, needs_ocsp: false };
    if let Some(extensions) = body.optional(tag::EXTENSIONS)? {
        let mut extensions = Elements(extensions);
        let list = extensions.inside(tag::SEQUENCE).filter(|_| version == 2)?;
        extensions.end()?;
        self::extensions(list, &mut usage)?;
    }
    body.end()?;
    Some(usage)
}

fn extensions(mut list: Elements<'_>, usage: &mut Usage) -> Option<()> {
    let mut has_names = false;
    while !list.0.is_empty() {
        let mut extension = list.inside(tag::SEQUENCE)?;
        let id = extension.take(tag::OID)?;
        oid(id)?;
        if let Some(critical) = extension.optional(tag::BOOLEAN)? {
            boolean(critical)?;
        }
        let content = extension.take(tag::OCTET_STRING)?;
        extension.end()?;
        match id {
            id::KEY_USAGE => usage.signs &= signs(content).unwrap_or(false),
            id::SUBJECT_ALTERNATIVE_NAME => {
                // Envoy finds no names where the extension is there twice.
                usage.server_name = !has_names && server_name(content).unwrap_or(false);
                has_names = true;
            }
            id::TLS_FEATURE => usage.needs_ocsp |= needs_ocsp(content).unwrap_or(false),
            _ => {}
        }
    }
    Some(())
}

/// Whether digital signatures are among the usages of a key.
fn signs(content: &[u8]) -> Option<bool> {
    let mut content = Elements(content);
    let usages = content.take(tag::BIT_STRING)?;
    content.end()?;
    bit_string(usages)?;
    Some(usages.get(1).is_some_and(|first| first & 0x80 != 0))
}

/// Whether one of the names is a server's. If one of them cannot be read, none is.
fn server_name(content: &[u8]) -> Option<bool> {
    let mut content = Elements(content);
    let mut names = content.inside(tag::SEQUENCE)?;
    content.end()?;
    let mut found = false;
    while !names.0.is_empty() {
        match names.any()? {
            (tag::DNS_NAME | tag::URI, text) => found |= text.is_ascii().then_some(true)?,
            (tag::IP_ADDRESS, address) => found |= matches!(address.len(), 4 | 16).then_some(true)?,
            // An e-mail address.
            (0x81, text) => text.is_ascii().then_some(())?,
            _ => return None,
        }
    }
    Some(found)
}

fn needs_ocsp(content: &[u8]) -> Option<bool> {
    let mut content = Elements(content);
    let mut features = content.inside(tag::SEQUENCE)?;
    let mut found = false;
    while !features.0.is_empty() {
        found |= features.take(tag::INTEGER)? == STATUS_REQUEST;
    }
    Some(found)
}

/// An algorithm and its parameters, whatever they are.
fn algorithm(mut algorithm: Elements<'_>) -> Option<()> {
    oid(algorithm.take(tag::OID)?)?;
    if !algorithm.0.is_empty() {
        let (kind, parameters) = algorithm.any()?;
        value(kind, parameters)?;
    }
    algorithm.end()
}

/// A distinguished name; says whether a common name is in it.
fn name(mut name: Elements<'_>) -> Option<bool> {
    let mut common = false;
    while !name.0.is_empty() {
        let mut set = name.inside(tag::SET).filter(|set| !set.0.is_empty())?;
        while !set.0.is_empty() {
            let mut attribute = set.inside(tag::SEQUENCE)?;
            let id = attribute.take(tag::OID)?;
            oid(id)?;
            let (kind, text) = attribute.any()?;
            value(kind, text)?;
            attribute.end()?;
            common |= id == id::COMMON_NAME && !text.is_empty();
        }
    }
    Some(common)
}

/// A value of any type; those whose content has a form of its own are looked at. BoringSSL converts the strings of a name to
/// UTF-8 to compare it with others, and rejects a certificate where that fails; Latin-1, as which it takes all other strings, cannot fail.
fn value(kind: u8, value: &[u8]) -> Option<()> {
    match kind {
        tag::BOOLEAN => boolean(value),
        tag::INTEGER | tag::ENUMERATED => integer(value),
        tag::BIT_STRING => bit_string(value),
        tag::NULL => value.is_empty().then_some(()),
        tag::OID => oid(value),
        tag::UTF8_STRING => characters(std::str::from_utf8(value).ok()?.chars().map(u32::from)),
        tag::BMP_STRING => characters(numbers::<2>(value)?),
        tag::UNIVERSAL_STRING => characters(numbers::<4>(value)?),
        tag::UTC_TIME | tag::GENERALIZED_TIME => time(kind, value),
        tag::OCTET_STRING | tag::SEQUENCE | tag::SET => Some(()),
        tag::NUMERIC_STRING | tag::PRINTABLE_STRING | tag::T61_STRING | tag::IA5_STRING | tag::VISIBLE_STRING => {
            Some(())
        }
        _ => None,
    }
}

/// False, also where it need not be written, or true.
fn boolean(value: &[u8]) -> Option<()> {
    matches!(value, [0x00 | 0xff]).then_some(())
}

/// Numbers of so many bytes each, from the highest byte on.
fn numbers<const BYTES: usize>(value: &[u8]) -> Option<impl Iterator<Item = u32>> {
    let (numbers, rest) = value.as_chunks::<BYTES>();
    let number = |bytes: &[u8; BYTES]| bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    rest.is_empty().then(|| numbers.iter().map(number))
}

/// Whether all numbers are characters of Unicode: neither surrogates nor those that are reserved for ever as noncharacters.
fn characters(mut numbers: impl Iterator<Item = u32>) -> Option<()> {
    let is_noncharacter = |number: u32| number & 0xfffe == 0xfffe || (0xfdd0..=0xfdef).contains(&number);
    numbers.all(|number| char::from_u32(number).is_some() && !is_noncharacter(number)).then_some(())
}

fn integer(value: &[u8]) -> Option<()> {
    match value {
        [] | [0, 0..=0x7f, ..] | [0xff, 0x80..=0xff, ..] => None,
        _ => Some(()),
    }
}

fn oid(value: &[u8]) -> Option<()> {
    let ends = value.last()? & 0x80 == 0;
    let mut first = true;
    for byte in value {
        // A number does not begin with a digit of nothing.
        if first && *byte == 0x80 {
            return None;
        }
        first = byte & 0x80 == 0;
    }
    ends.then_some(())
}

fn bit_string(value: &[u8]) -> Option<()> {
    let (&unused, bits) = value.split_first()?;
    let clear = match (unused, bits.last()) {
        (0, _) => true,
        (1..=7, Some(last)) => last & ((1 << unused) - 1) == 0,
        _ => false,
    };
    clear.then_some(())
}

/// A time in UTC, to the second.
fn time(kind: u8, text: &[u8]) -> Option<()> {
    let year_digits = match kind {
        tag::UTC_TIME => 2,
        tag::GENERALIZED_TIME => 4,
        _ => return None,
    };
    let (digits, zone) = text.split_at_checked(year_digits + 10)?;
    (zone == b"Z" && digits.iter().all(u8::is_ascii_digit)).then_some(())?;
    let (year, rest) = digits.split_at(year_digits);
    let number = |digits: &[u8]| digits.iter().fold(0u32, |number, digit| number * 10 + u32::from(digit - b'0'));
    let year = match number(year) {
        year if year_digits == 4 => year,
        year if year < 50 => 2000 + year,
        year => 1900 + year,
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut parts = rest.chunks_exact(2).map(number);
    let days = match parts.next()? {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let (day, hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    ((1..=days).contains(&day) && hour < 24 && minute < 60 && second < 60).then_some(())
}

/// Elements that follow each other.
#[derive(Clone, Copy)]
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    /// The next element, whatever its tag, which must have one byte.
    fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
                let minimal = length >= 0x80 && bytes.first() != Some(&0);
                (minimal.then_some(length)?, rest)
            }
            _ => return None,
        };
        let (body, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, body))
    }

    fn take(&mut self, wanted: u8) -> Option<&'a [u8]> {
        let (tag, body) = self.any()?;
        (tag == wanted).then_some(body)
    }

    fn inside(&mut self, wanted: u8) -> Option<Elements<'a>> {
        self.take(wanted).map(Elements)
    }

    /// The next element if it has this tag.
    fn optional(&mut self, wanted: u8) -> Option<Option<&'a [u8]>> {
        if self.0.first() == Some(&wanted) { self.take(wanted).map(Some) } else { Some(None) }
    }

    fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
