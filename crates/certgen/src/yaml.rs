//! The Secrets as YAML, for `kubectl apply` or a repository of sealed files.

use k8s_openapi::api::core::v1::Secret;

/// One document per Secret.
pub fn render(secrets: &[Secret]) -> Result<String, serde_saphyr::ser::Error> {
    let mut text = String::new();
    for secret in secrets {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(secret)?);
    }
    Ok(text)
}
