//! Whether requests are tried again.

use super::Reader;
use model::route::{RetryPolicy, action::RetryOn};

/// The policy, where `retry-on` asks for one. `num-retries` of -1 means none; 0, as when it is absent, means one.
pub(super) fn policy(reader: &mut Reader<'_>) -> Option<RetryPolicy> {
    let found = reader.get("retry-on")?;
    let mut on = Vec::new();
    for word in found.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match RetryOn::ALL.iter().find(|on| on.word() == word) {
            Some(&known) => on.push(known),
            None => reader.wrong(&found.name, format!("`{word}` is not a condition for a retry")),
        }
    }
    let count = count(reader);
    let per_try = reader.timeout("per-try-timeout").unwrap_or_default();
    if on.is_empty() {
        return None;
    }
    on.sort_unstable();
    on.dedup();
    Some(RetryPolicy { on, count, per_try, status_codes: Vec::new() })
}

fn count(reader: &mut Reader<'_>) -> u32 {
    let Some(found) = reader.get("num-retries") else { return 1 };
    match found.value.trim().parse::<i64>() {
        Ok(-1) => 0,
        Ok(0) => 1,
        Ok(count) if (1..=i64::from(u32::MAX)).contains(&count) => u32::try_from(count).unwrap_or(u32::MAX),
        _ => {
            reader.wrong(&found.name, format!("`{}` is not -1, 0 or a number of retries", found.value));
            1
        }
    }
}
