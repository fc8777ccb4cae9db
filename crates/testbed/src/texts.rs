//! Texts for the fields of objects that are written by somebody hostile, or careless.

/// What has hurt others, and what looks as if it might: nothing, blanks and control characters, what means something to Envoy, to URLs
/// or to patterns, header injections, numbers that no type holds.
#[rustfmt::skip]
pub const HOSTILE: &[&str] = &[
    "", " ", "\n", "\r\n", "\t", "\0", "\u{7f}", "é", "\u{202e}", "\u{feff}", "💥",
    "%", "%%", "%REQ(x)%", "%REQ(", "%START_TIME%", "%HOSTNAME%",
    "*", "**", "*.", ".*", "..", "/", "//", "/../", "/%00", "/a?b", "/a#b", "/a b", "?", "#",
    "[", "(", "\\", "{", "}", "'", "\"", "|", ":", "~", "a;b", "a b", "a\nb", "a\r\nb: c",
    "host", "Host", ":path", "null", "true", "-1", "0", "4294967296", "18446744073709551616", "1e308",
];
