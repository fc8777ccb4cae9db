//! TLS hosts: which certificate and settings a host has when several objects say so, and which hosts share a chain.

use model::{
    Code, Host, Verdict,
    tls::{Chain, Termination},
    unit::TlsPiece,
};

/// A TLS host, and who lost on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// How its connections are terminated.
    pub termination: Termination,
    /// A verdict for each piece that asked for something else.
    pub lost: Vec<Verdict>,
}

/// The host's termination: that of the piece with the least rank. Those that ask for the same agree, and are not told.
pub fn assemble(host: &Host, mut pieces: Vec<&TlsPiece>) -> Option<Assembled> {
    pieces.sort_by(|a, b| a.rank.cmp(&b.rank).then_with(|| a.origin.cmp(&b.origin)));
    let (winner, others) = pieces.split_first()?;
    let lost = others.iter().filter(|piece| piece.termination != winner.termination).map(|loser| {
        let why = format!("TLS of host {host}: the certificate and settings of {} are served", winner.origin);
        Verdict::new(Code::CertificateConflict, loser.origin.clone(), why)
    });
    Some(Assembled { termination: winner.termination.clone(), lost: lost.collect() })
}

/// The chain of hosts that have a termination in common.
pub fn chain(termination: &Termination, mut hosts: Vec<Host>) -> Chain {
    hosts.sort();
    hosts.dedup();
    Chain { termination: termination.clone(), hosts }
}
