//! Certificates of our own for hosts without a Secret, where the operator wants them.

use std::time::{Duration, SystemTime};

use certgen::Authority;
use model::Host;
use model::tls::KeyPair;
use pipeline::Pipeline;
use tracing::warn;

/// How long a certificate that we sign ourselves is valid: longer than anybody works on one thing.
const VALID_FOR: Duration = Duration::from_secs(60 * 60 * 24 * 30);

/// Signs with an authority that is made when it is first needed.
#[derive(Default)]
pub struct Signer {
    authority: Option<Authority>,
}

impl Signer {
    /// Makes the certificates that the pipeline waits for; says whether there were any.
    pub fn sign(&mut self, pipeline: &mut Pipeline) -> bool {
        let wanted = pipeline.unsigned();
        let mut any = false;
        for host in wanted {
            match self.signed(&host) {
                Ok(pair) => {
                    pipeline.sign(&host, pair);
                    any = true;
                }
                Err(error) => warn!(%host, %error, "failed to sign a certificate"),
            }
        }
        any
    }

    fn signed(&mut self, host: &Host) -> Result<KeyPair, certgen::IssueError> {
        let authority = match self.authority.take() {
            Some(authority) => authority,
            None => Authority::new(SystemTime::now(), VALID_FOR)?,
        };
        let pair = self.authority.insert(authority).host(&host.to_string())?;
        Ok(KeyPair { chain: pair.certificate.into(), key: pair.key.into() })
    }
}
