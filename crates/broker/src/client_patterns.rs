//! Patterns with the variable `{client_id}`, compiled for the clients that have used them last.
//!
//! Compiling one takes some 10 to 30 µs, and more than a millisecond with a repeated class of Unicode; the vhost is locked
//! meanwhile. A compiled one for each of many clients would take too much memory.

use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_auth::ClientPattern;
use parking_lot::Mutex;

/// The compiled patterns of a broker.
#[derive(Debug, Default)]
pub(crate) struct ClientPatterns {
    /// The one that was used last is the last.
    kept: Mutex<VecDeque<Kept>>,
}

#[derive(Debug)]
struct Kept {
    pattern: Box<str>,
    client_id: Box<str>,
    compiled: Arc<ClientPattern>,
}

/// Maximum number of compiled patterns. Common ones take 3 to 15 kilobytes each.
const KEPT_MAX: usize = 256;

impl ClientPatterns {
    /// A pattern with the identifier of a client. It is compiled if it is not kept.
    pub(crate) fn of(&self, pattern: &str, client_id: &str) -> Arc<ClientPattern> {
        if let Some(compiled) = self.find(pattern, client_id) {
            return compiled;
        }
        let compiled = Arc::new(ClientPattern::new(pattern, client_id));
        let mut kept = self.kept.lock();
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(Kept {
            pattern: pattern.into(),
            client_id: client_id.into(),
            compiled: Arc::clone(&compiled),
        });
        compiled
    }

    fn find(&self, pattern: &str, client_id: &str) -> Option<Arc<ClientPattern>> {
        let mut kept = self.kept.lock();
        let at = kept
            .iter()
            .rposition(|one| *one.client_id == *client_id && *one.pattern == *pattern)?;
        let found = kept.remove(at)?;
        let compiled = Arc::clone(&found.compiled);
        kept.push_back(found);
        Some(compiled)
    }
}

#[cfg(test)]
mod tests {
    use crosstie_auth::CLIENT_ID;

    use super::*;

    #[test]
    fn patterns_that_are_used_are_compiled_once() {
        let patterns = ClientPatterns::default();
        let pattern = format!("^{CLIENT_ID}$");
        let first = patterns.of(&pattern, "c");
        assert!(first.allows("c") && !first.allows("d"));
        // Other clients come and go, and the first one is used meanwhile.
        for number in 0..2 * KEPT_MAX {
            let other = patterns.of(&pattern, &format!("c{number}"));
            assert!(other.allows(&format!("c{number}")) && !other.allows("c"));
            assert!(Arc::ptr_eq(&first, &patterns.of(&pattern, "c")));
        }
        assert_eq!(patterns.kept.lock().len(), KEPT_MAX);
        // Another pattern of the same client is another one.
        assert!(patterns.of(&format!("^{CLIENT_ID}x"), "c").allows("cx"));
        for number in 0..KEPT_MAX {
            patterns.of(&pattern, &format!("d{number}"));
        }
        assert!(!Arc::ptr_eq(&first, &patterns.of(&pattern, "c")));
    }
}
