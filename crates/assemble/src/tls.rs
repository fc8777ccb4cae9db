//! TLS hosts: which certificate and settings a host has where several objects ask for TLS, and which hosts share a chain.
//!
//! In: what objects ask for one host of a TLS listener. Out: what is done with its connections, and a verdict for each object
//! that asked for something else.

use model::{
    CertificateRef, Code, Host, Verdict,
    tls::{Chain, Termination, TlsMode},
    translation::{Covers, TlsPiece},
};

/// A TLS host, and who lost on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// What is done with its connections.
    pub mode: TlsMode,
    /// The certificate that it shows, if it shows one; the first of several.
    pub certificate: Option<CertificateRef>,
    /// How connections are terminated that name no host, or one that is not known, if they may carry its requests.
    pub fallback: Option<Termination>,
    /// Which hosts without TLS of their own it covers.
    pub covers: Covers,
    /// A verdict for each object that asked for something else; sorted.
    pub lost: Vec<Verdict>,
}

/// What the object that takes precedence asks for. Those that ask for the same agree, and are not told.
pub fn assemble(host: &Host, mut pieces: Vec<&TlsPiece>) -> Option<Assembled> {
    pieces.sort_by(|a, b| a.precedence.cmp(&b.precedence).then_with(|| a.origin.cmp(&b.origin)));
    let (winner, others) = pieces.split_first()?;
    let lost = others.iter().filter(|piece| piece.mode != winner.mode).map(|loser| {
        let why = format!("host {host} already has the certificate and TLS settings of {}", winner.origin);
        Verdict::new(Code::CertificateConflict, loser.origin.clone(), why).related_to(winner.origin.clone())
    });
    let mut lost: Vec<_> = lost.collect();
    lost.sort();
    let mode = winner.mode.clone();
    let certificate = mode.certificate().cloned();
    Some(Assembled { mode, certificate, fallback: winner.fallback.clone(), covers: winner.covers, lost })
}

/// The chain of hosts that have a termination in common; it may take every name that no chain lists, too.
pub fn chain(termination: &Termination, mut hosts: Vec<Host>, takes_unlisted: bool) -> Chain {
    hosts.sort();
    hosts.dedup();
    Chain { termination: termination.clone(), hosts, takes_unlisted }
}
