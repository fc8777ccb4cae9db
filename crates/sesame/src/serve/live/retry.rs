//! A configuration that was refused for a reason that may pass: a port that somebody has, a certificate that is not there yet.
//!
//! In: what was refused. Out: the same once more, after a time that doubles, until it is taken or another comes.

use std::time::Duration;

use tokio::time::{self, Instant};

use crate::serve::config::Config;

/// The first wait.
const FIRST: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST: Duration = Duration::from_secs(60);

/// What is to be tried again, if anything is.
#[derive(Default)]
pub struct Retry {
    refused: Option<Refused>,
}

struct Refused {
    config: Config,
    wait: Duration,
    at: Instant,
}

impl Retry {
    /// Tries this configuration again, or nothing.
    pub fn set(&mut self, config: Option<Config>) {
        self.refused = config.map(|config| {
            let before = self.refused.take().filter(|before| before.config == config);
            let wait = before.map_or(FIRST, |before| (before.wait * 2).min(LONGEST));
            Refused { config, wait, at: Instant::now() + wait }
        });
    }

    /// The configuration, when its time has come. Nothing is lost when the future is dropped.
    pub async fn due(&self) -> Config {
        match &self.refused {
            Some(refused) => {
                time::sleep_until(refused.at).await;
                refused.config.clone()
            }
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_refused_configuration_is_due_again_after_twice_the_time() {
        let mut retry = Retry::default();
        let begun = Instant::now();
        for seconds in [1, 3, 7, 15, 31, 63, 123, 183] {
            retry.set(Some(Config::default()));
            assert!(retry.due().await == Config::default());
            assert_eq!(begun.elapsed().as_secs(), seconds);
        }
        retry.set(None);
        assert!(time::timeout(LONGEST * 2, retry.due()).await.is_err(), "there is nothing to try");
    }
}
