//! Waiting for what comes later: a router that is not there yet, a procedure that nobody has
//! registered. Workers of a node start in parallel, so an end's first look is often too early.

use std::time::{Duration, Instant};

use super::leave::Leave;
use crate::process::WorkerError;

/// A node is there in milliseconds, ...
const FIRST: Duration = Duration::from_millis(2);
/// ... and one that takes longer is not to be kept busy by being asked.
const LONGEST: Duration = Duration::from_millis(500);
/// After this long it is said once what is waited for.
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

    /// One pause; false once leaving is wished. `why` is told when it takes long.
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

/// Does `connect` until it succeeds, as long as the router is only not there; `None` once leaving
/// is wished.
pub(super) fn connected<T>(
    leave: &Leave,
    connect: impl Fn() -> Result<T, WorkerError>,
) -> Result<Option<T>, WorkerError> {
    let mut pauses = Pauses::new(leave);
    loop {
        match connect() {
            Ok(connected) => return Ok(Some(connected)),
            Err(error) if comes_later(&error) => {
                if !pauses.pause(|| error.to_string()) {
                    return Ok(None);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether asking again can help.
fn comes_later(error: &WorkerError) -> bool {
    matches!(
        error,
        WorkerError::Connect(..)
            | WorkerError::Closed(_)
            | WorkerError::Io(_)
            | WorkerError::TimedOut
    )
}
