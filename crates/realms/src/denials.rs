//! Denied requests of sessions: counted by cause, and reported in the log and the audit log.
//!
//! A session may be denied a hundred thousand requests per second. All are counted; log lines are limited, and the next
//! line has the number of omitted ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crosstie_front::bound::Bound;
use crosstie_routing::{Denial, RefusalCause};
use crosstie_transport::{PeerAddress, now_s};

use crate::audit::Audit;

/// A router's denials.
pub struct Denials {
    counts: [AtomicU64; RefusalCause::ALL.len()],
    lines: Bound,
    audit: Option<Arc<Audit>>,
}

/// Maximum number of audit log lines per second: a flood of denials must not displace refused logins from a file of
/// limited size.
const LINES_PER_SECOND_MAX: u32 = 50;

impl Denials {
    pub fn new(audit: Option<Arc<Audit>>) -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; RefusalCause::ALL.len()],
            lines: Bound::of(LINES_PER_SECOND_MAX),
            audit,
        }
    }

    /// Counts and reports a denial.
    pub fn note(&self, realm: &str, peer: PeerAddress, denial: &Denial<'_, ()>) {
        self.counts[place(denial.cause)].fetch_add(1, Ordering::Relaxed);
        let Some(audit) = &self.audit else {
            return;
        };
        let (may, left_out) = self.lines.count(now_s());
        if !may {
            return;
        }
        let (session, left_out) = (denial.session.to_string(), left_out.to_string());
        let peer = peer.to_string();
        let mut entries = vec![
            ("event", "action_refused"),
            ("cause", denial.cause.name()),
            ("action", denial.action.name()),
            ("uri", denial.uri),
            ("realm", realm),
            ("session", &session),
            ("authid", &denial.identity.authid),
            ("role", &denial.identity.authrole),
            ("peer", &peer),
        ];
        if left_out != "0" {
            entries.push(("left_out_before", &left_out));
        }
        audit.note(&entries);
    }

    /// Number of denials with that cause.
    pub fn count(&self, cause: RefusalCause) -> u64 {
        self.counts[place(cause)].load(Ordering::Relaxed)
    }
}

fn place(cause: RefusalCause) -> usize {
    let found = RefusalCause::ALL.iter().position(|known| *known == cause);
    found.unwrap_or(0)
}
