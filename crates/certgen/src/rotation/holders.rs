//! What replicas and proxies say they have, and who has to be waited for.

/// Replicas or proxies that have the same certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateHolders {
    /// The names of some of them.
    pub names: Vec<String>,
    /// How many there are.
    pub count: usize,
    /// Whether they are proxies.
    pub is_proxy: bool,
    /// When the CAs expire that they trust, as far as they say: statistics of a proxy say the one that expires first.
    pub cas: Vec<i64>,
    /// Whether these are all of them. If they are not, and there are none, nothing is known.
    pub is_complete: bool,
    /// When the certificate expires that they present, if they have one.
    pub leaf: Option<i64>,
}

impl CertificateHolders {
    /// Whether they say which CAs they trust.
    fn reports(&self) -> bool {
        self.is_complete || !self.cas.is_empty()
    }

    /// Whether they trust the CA that expires then; none if they do not say.
    pub(super) fn trusts(&self, ca: i64) -> Option<bool> {
        self.reports().then(|| self.cas.contains(&ca))
    }

    /// Whether they have the certificate that shows that they have read a Secret; none if they do not say, or have none.
    pub(super) fn shows(&self, leaf: Option<i64>) -> Option<bool> {
        Some(self.leaf? == leaf?)
    }

    /// Whether they present the certificate that expires then; none if they do not say. One that has no certificate has a token.
    pub(super) fn presents(&self, leaf: i64) -> Option<bool> {
        self.reports().then(|| self.leaf.is_none_or(|own| own == leaf))
    }
}

/// Why the next step has to wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Until when at least, in seconds since 1970.
    pub until: i64,
    /// Names of those that do not have what they need yet.
    pub behind: Vec<String>,
    /// How many there are.
    pub behind_count: usize,
    /// Names of those that do not say what they have.
    pub silent: Vec<String>,
    /// How many there are.
    pub silent_count: usize,
}

impl Waiting {
    /// Those of whom something does not hold, or is not known.
    pub(super) fn for_all(
        holders: &[CertificateHolders],
        holds: impl Fn(&CertificateHolders) -> Option<bool>,
    ) -> Waiting {
        let mut waiting = Waiting::default();
        for group in holders {
            let (names, count) = match holds(group) {
                Some(true) => continue,
                Some(false) => (&mut waiting.behind, &mut waiting.behind_count),
                None => (&mut waiting.silent, &mut waiting.silent_count),
            };
            names.extend(group.names.iter().cloned());
            *count += group.count;
        }
        waiting
    }
}
