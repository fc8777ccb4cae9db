//! `/shutdown` of the process that holds a proxy's end back: a hook that answers when it may end.

use axum::{Router, routing::get};

/// `/shutdown`, which answers when `drained` is done, and `/healthz`.
pub fn shutdown<F, Drained>(drained: F) -> Router
where
    F: Fn() -> Drained + Clone + Send + Sync + 'static,
    Drained: Future<Output = ()> + Send + 'static,
{
    let answer = move || {
        let drained = drained();
        async move {
            drained.await;
            "ok\n"
        }
    };
    Router::new().route("/shutdown", get(answer)).route("/healthz", get(|| async { "ok\n" }))
}
