//! What is changed about the cookies that backends set.
//!
//! A name or value that is not what a cookie can carry is refused here, so that what reaches a proxy can neither end an
//! attribute early nor begin another header.

use std::{fmt, sync::Arc};

/// The longest name or value.
pub const LONGEST: usize = 4096;

/// Why a text cannot stand in a cookie.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CookieError {
    /// Nothing there.
    #[error("must not be empty")]
    Empty,
    /// Past [`LONGEST`].
    #[error("it has {0} bytes; the limit is {LONGEST}")]
    TooLong(usize),
    /// A character that would end it.
    #[error("`{0}` contains a character that is not allowed in a cookie")]
    Character(Box<str>),
    /// Not a domain.
    #[error("`{0}` is not a valid domain")]
    Domain(Box<str>),
}

fn read(text: &str, is_good: impl Fn(u8) -> bool) -> Result<Arc<str>, CookieError> {
    if text.is_empty() {
        return Err(CookieError::Empty);
    }
    if text.len() > LONGEST {
        return Err(CookieError::TooLong(text.len()));
    }
    if !text.bytes().all(is_good) {
        let start: String = text.chars().take(80).collect();
        return Err(CookieError::Character(start.escape_debug().to_string().into()));
    }
    Ok(text.into())
}

/// The name of a cookie: a token, with its case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CookieName(Arc<str>);

impl CookieName {
    /// Reads a name.
    pub fn parse(text: &str) -> Result<Self, CookieError> {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        read(text, is_token).map(Self)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The value of an attribute: visible ASCII and spaces, without `;`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CookieValue(Arc<str>);

impl CookieValue {
    /// Reads a path.
    pub fn path(text: &str) -> Result<Self, CookieError> {
        read(text, |b| (b' '..=b'~').contains(&b) && b != b';').map(Self)
    }

    /// Reads a domain: labels of letters, digits and hyphens; a dot in front is what old servers write.
    pub fn domain(text: &str) -> Result<Self, CookieError> {
        let domain = read(text, |b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.')?;
        let labels = domain.strip_prefix('.').unwrap_or(&domain);
        let is_label = |label: &str| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
        if labels.split('.').all(is_label) { Ok(Self(domain)) } else { Err(CookieError::Domain(text.into())) }
    }

    /// The value as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a cookie is sent with requests from other sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SameSite {
    /// Never.
    Strict,
    /// On top-level navigation only.
    Lax,
    /// Always.
    None,
}

impl SameSite {
    /// Reads the attribute's value.
    pub fn parse(text: &str) -> Option<Self> {
        [SameSite::Strict, SameSite::Lax, SameSite::None].into_iter().find(|word| word.to_string() == text)
    }
}

impl fmt::Display for SameSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SameSite::Strict => "Strict",
            SameSite::Lax => "Lax",
            SameSite::None => "None",
        })
    }
}

/// Changes of one cookie; attributes that are not set stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CookieRewrite {
    /// The cookie.
    pub name: CookieName,
    /// Its path.
    pub path: Option<CookieValue>,
    /// Its domain.
    pub domain: Option<CookieValue>,
    /// Whether it is sent over HTTPS only.
    pub secure: Option<bool>,
    /// Whether it is sent with requests from other sites.
    pub same_site: Option<SameSite>,
}

impl CookieRewrite {
    /// This one, and the other where this one does not set an attribute.
    #[must_use]
    pub fn over(self, other: &Self) -> Self {
        Self {
            name: self.name,
            path: self.path.or_else(|| other.path.clone()),
            domain: self.domain.or_else(|| other.domain.clone()),
            secure: self.secure.or(other.secure),
            same_site: self.same_site.or(other.same_site),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_end_an_attribute_or_a_header() {
        for name in ["", "a b", "a;b", "a=b", "a\"b", "a\r\nset-cookie: c", "é", "a,b", "]]..os.exit()--(("] {
            assert!(CookieName::parse(name).is_err(), "{name:?}");
        }
        for path in ["", "/; Domain=evil.example", "/\r\nx: y", "/\0", "/é"] {
            assert!(CookieValue::path(path).is_err(), "{path:?}");
        }
        for domain in ["", "a b", "a..b", "-a.b", ".", "a.example; Secure", "a_b", "a\nb"] {
            assert!(CookieValue::domain(domain).is_err(), "{domain:?}");
        }
        assert!(CookieName::parse("__Host-id").is_ok());
        assert!(CookieValue::path("/a b/%20\"").is_ok());
        assert!(CookieValue::domain(".shop.example.com").is_ok());
    }

    #[test]
    fn the_closer_setting_wins_and_the_others_stay() {
        let name = CookieName::parse("id").expect("a name");
        let path = |text| CookieValue::path(text).ok();
        let nothing = CookieRewrite { name, path: None, domain: None, secure: None, same_site: None };
        let far = CookieRewrite { path: path("/far"), secure: Some(true), ..nothing.clone() };
        let near = CookieRewrite { path: path("/near"), ..nothing };
        let both = near.over(&far);
        assert_eq!((both.path, both.secure), (path("/near"), Some(true)));
    }
}
