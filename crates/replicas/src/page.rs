//! Pages: a message carries as much as fits, however much there is to send.
//!
//! A message beyond [`xds::peer::LARGEST`] never arrives, and one that is nearly as large holds up everything behind it.

use serde::Serialize;
use std::collections::VecDeque;

/// The approximate size of a page, in bytes.
pub(crate) const PAGE: usize = 256 << 10;

/// The room left in one message.
pub(crate) struct Page {
    room: usize,
}

impl Page {
    pub fn new() -> Self {
        Self { room: PAGE }
    }

    /// Takes from the front of a queue what fits. The first thing on a page always does.
    pub fn fill<T: Serialize>(&mut self, queue: &mut VecDeque<T>) -> Vec<T> {
        let mut taken = Vec::new();
        while let Some(item) = queue.front() {
            // What cannot be serialized counts as empty, so that it is not retried for ever.
            let bytes = serde_json::to_vec(item).map_or(0, |json| json.len() + 1);
            if bytes > self.room && self.room < PAGE {
                self.room = 0;
                return taken;
            }
            self.room = self.room.saturating_sub(bytes);
            taken.extend(queue.pop_front());
        }
        taken
    }

    /// Takes something that is sent whole, if it fits. The first thing on a page always does.
    pub fn take<T: Serialize>(&mut self, item: &mut Option<T>) -> Option<T> {
        let bytes = serde_json::to_vec(item.as_ref()?).map_or(0, |json| json.len() + 1);
        if bytes > self.room && self.room < PAGE {
            self.room = 0;
            return None;
        }
        self.room = self.room.saturating_sub(bytes);
        item.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_said_in_order_and_no_page_is_large() {
        let mut queue: VecDeque<String> = (0..10_000).map(|at| format!("{at} {}", "x".repeat(at % 500))).collect();
        queue.insert(5_000, "y".repeat(3 * PAGE));
        let all = queue.clone();
        let mut said = Vec::new();
        while !queue.is_empty() {
            let page = Page::new().fill(&mut queue);
            let bytes = serde_json::to_vec(&page).map_or(0, |json| json.len());
            assert!(bytes <= PAGE + 2 || page.len() == 1, "{bytes} bytes");
            said.extend(page);
        }
        assert_eq!(all, said);
    }
}
