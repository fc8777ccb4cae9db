//! TLS hosts over QUIC: what proxies cannot keep there is not served there.
//!
//! In: a TLS host of an HTTP/3 listener, as [`tls`](crate::tls) has assembled it. Out: the same host, or one whose connections are closed,
//! and a verdict that says why. Closed, not left out: connections for its name would be those of a wider host, which may ask less of
//! clients. Clients reach such a host over TCP.

use crate::tls::Assembled;
use model::{
    Code, Host, Verdict,
    tls::{Termination, TlsMode, TlsVersion},
    translation::TlsPiece,
};

/// Closes a host of which something cannot be kept, and tells whoever asks for it; all hosts of the fleet may have their curves limited.
pub fn restrict(host: &Host, assembled: &mut Assembled, pieces: &[&TlsPiece], has_curves: bool) {
    // Nobody is without a server name that a host is known by.
    assembled.fallback = None;
    let Some(unkept) = assembled.mode.http().and_then(|termination| unkept(termination, has_curves)) else { return };
    let why = format!("host {host}: {unkept}, so HTTP/3 connections for it are closed");
    let asked = pieces.iter().filter(|piece| piece.mode == assembled.mode);
    assembled.lost.extend(asked.map(|piece| Verdict::new(Code::Http3Tls, piece.origin.clone(), why.clone())));
    assembled.lost.sort();
    assembled.mode = TlsMode::closed();
    assembled.certificate = None;
}

/// What of a termination cannot be kept.
fn unkept(termination: &Termination, has_curves: bool) -> Option<&'static str> {
    let has_curves = has_curves || termination.parameters.as_ref().is_some_and(|own| !own.curves.is_empty());
    if termination.clients.is_some() {
        Some("proxies cannot ask for client certificates over HTTP/3")
    } else if termination.highest < TlsVersion::V1_3 {
        Some("HTTP/3 requires TLS 1.3, which is above its maximum version")
    } else if has_curves {
        Some("proxies cannot limit the curves of key exchange over HTTP/3")
    } else {
        None
    }
}
