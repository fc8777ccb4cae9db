//! The same page of every replica, asked at once.

use anyhow::{Error, Result};
use futures::future::join_all;
use serde::de::DeserializeOwned;
use tracing::warn;

use super::controllers::Controller;

/// What each replica says, in their order.
pub async fn each<T: DeserializeOwned>(controllers: &[Controller], path: &str) -> Vec<(String, Result<T>)> {
    let asking = controllers.iter().map(async |controller| {
        let page = async { controller.get(path).await?.json().await };
        (controller.name.clone(), page.await)
    });
    join_all(asking).await
}

/// What those say that answer; who does not is logged.
///
/// # Errors
/// Why the first one does not, if none does.
pub async fn answering<T: DeserializeOwned>(controllers: &[Controller], path: &str) -> Result<Vec<(String, T)>> {
    let (mut answers, mut failed): (Vec<(String, T)>, Option<Error>) = (Vec::new(), None);
    for (name, page) in each(controllers, path).await {
        match page {
            Ok(page) => answers.push((name, page)),
            Err(error) => {
                if controllers.len() > 1 {
                    warn!("{name}: {error:#}");
                }
                failed.get_or_insert(error);
            }
        }
    }
    match failed {
        Some(error) if answers.is_empty() => Err(error),
        _ => Ok(answers),
    }
}
