//! Waiting for a router that does not listen yet, or a procedure that is not registered yet. Workers of a node start in
//! parallel, so an end's first attempt is often too early.

use std::time::{Duration, Instant};

use super::leave::Leave;
use crate::process::WorkerError;

/// A node starts in milliseconds, ...
const FIRST: Duration = Duration::from_millis(2);
/// ... and one that takes longer must not be kept busy by attempts.
const LONGEST: Duration = Duration::from_millis(500);
/// After this long the reason for the wait is printed once.
const QUIET: Duration = Duration::from_secs(1);

pub(super) struct Pauses<'a> {
    leave: &'a Leave,
    next: Duration,
    since: Instant,
    said: bool,
}

impl<'a> Pauses<'a> {
    pub(super) fn new(leave: &'a Leave) -> Self {
        Self {
            leave,
            next: FIRST,
            since: Instant::now(),
            said: false,
        }
    }

    /// One pause; false after a leave request. `why` is called when it takes long.
    pub(super) fn pause(&mut self, why: impl FnOnce() -> String) -> bool {
        if !self.said && self.since.elapsed() > QUIET {
            self.said = true;
            eprintln!("crosstie roundtrip: waiting: {}", why());
        }
        let wished = self.leave.wait(self.next);
        self.next = (self.next * 2).min(LONGEST);
        !wished
    }
}

/// Calls `connect` until it succeeds, as long as the router is only unreachable; `None` after a leave request.
pub(super) fn connected<T>(
    leave: &Leave,
    connect: impl Fn() -> Result<T, WorkerError>,
) -> Result<Option<T>, WorkerError> {
    let mut pauses = Pauses::new(leave);
    loop {
        match connect() {
            Ok(connected) => return Ok(Some(connected)),
            Err(error) if is_temporary(&error) => {
                if !pauses.pause(|| error.to_string()) {
                    return Ok(None);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether a retry can help.
fn is_temporary(error: &WorkerError) -> bool {
    matches!(
        error,
        WorkerError::Connect(..)
            | WorkerError::Closed(_)
            | WorkerError::Io(_)
            | WorkerError::TimedOut
    )
}
