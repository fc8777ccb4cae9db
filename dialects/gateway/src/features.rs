//! What a GatewayClass of ours says that Gateways of it can do, in the names of the API's features.

/// The features, sorted by name.
pub const SUPPORTED: &[&str] =
    &["Gateway", "GatewayHTTPListenerIsolation", "GatewayPort8080", "ListenerSet", "ReferenceGrant"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_sorted_and_no_more_than_the_api_takes() {
        assert!(SUPPORTED.is_sorted() && SUPPORTED.len() <= 64);
    }
}
