//! The caller: one call after the other, and a line after each batch.

use std::cell::Cell;
use std::time::Instant;

use super::leave::{Leave, later};
use super::wait::{Pauses, connected};
use super::{EndOptions, RoundTripError};
use crate::load::{Answer, Driven, Exchange, Faults, Load, Traffic, Window, drive, monotonic_ns};
use crate::process::WorkerError;
use crate::wamp::caller::Caller;

#[derive(Clone, Debug)]
pub struct CallerOptions {
    pub end: EndOptions,
    pub batch: u64,
    /// Leaves after so many; without it never by itself.
    pub batches: Option<u64>,
}

/// Calls until a leave request, until the router leaves, or until all batches are done. `report` gets each batch's
/// average round trip in milliseconds; returning false ends the calls.
pub fn caller(
    options: &CallerOptions,
    mut report: impl FnMut(f64) -> bool,
) -> Result<(), RoundTripError> {
    let order = options.end.order();
    let leave = &options.end.leave;
    let Some(mut caller) = connected(leave, || Caller::join(&order))? else {
        return Ok(());
    };
    let breaker = caller.breaker()?;
    leave.prepare(move || later(breaker));
    let mut batches_left = options.batches.unwrap_or(u64::MAX);
    let ended = call(&mut caller, options, &mut |average_ms| {
        batches_left -= 1;
        report(average_ms) && batches_left > 0
    });
    match ended {
        Ok(()) => {
            // The results stand, whatever the router answers to the GOODBYE.
            let _ = caller.leave();
            Ok(())
        }
        Err(RoundTripError::Worker(WorkerError::Dismissed(_))) => {
            let _ = caller.answer_farewell();
            Ok(())
        }
        Err(_) if leave.is_wished() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Waits for the procedure and calls it; starts anew when its callee has left.
fn call(
    caller: &mut Caller,
    options: &CallerOptions,
    report: &mut dyn FnMut(f64) -> bool,
) -> Result<(), RoundTripError> {
    while wait_for_procedure(caller, options)? {
        let load = load(options.batch, u64::MAX);
        let (driven, goes_on) = drive_on(caller, &options.end.leave, &load, report)?;
        if let Some(faults) = driven.faults.describe()
            && driven.faults.failed == 0
        {
            return Err(unexplained(caller, options, &driven, faults));
        }
        if !goes_on || options.end.leave.is_wished() {
            return Ok(());
        }
        let error = caller.refusal().unwrap_or_default();
        if !COME_LATER.contains(&error) {
            let procedure = options.end.procedure.clone();
            let error = error.to_owned();
            return Err(RoundTripError::Refused { procedure, error });
        }
    }
    Ok(())
}

/// Calls periodically until a call succeeds; false after a leave request.
fn wait_for_procedure(
    caller: &mut Caller,
    options: &CallerOptions,
) -> Result<bool, RoundTripError> {
    let end = &options.end;
    let mut pauses = Pauses::new(&end.leave);
    loop {
        if end.leave.is_wished() {
            return Ok(false);
        }
        let (driven, _) = drive_on(caller, &end.leave, &load(u64::MAX, 1), &mut |_| true)?;
        if driven.right == 1 {
            return Ok(true);
        }
        if let Some(faults) = driven.faults.describe()
            && driven.faults.failed == 0
        {
            return Err(unexplained(caller, options, &driven, faults));
        }
        let error = caller.refusal().unwrap_or_default().to_owned();
        if !COME_LATER.contains(&error.as_str()) {
            let procedure = end.procedure.clone();
            return Err(RoundTripError::Refused { procedure, error });
        }
        if !pauses.pause(|| format!("{}: {error}", end.procedure)) {
            return Ok(false);
        }
    }
}

/// A router's errors while a callee is not there yet, or has just left.
const COME_LATER: [&str; 3] = [
    "wamp.error.no_such_procedure",
    "wamp.error.no_available_callee",
    "wamp.error.canceled",
];

fn unexplained(
    caller: &mut Caller,
    options: &CallerOptions,
    driven: &Driven,
    faults: String,
) -> RoundTripError {
    let procedure = options.end.procedure.clone();
    if driven.faults.wrong > 0 {
        RoundTripError::Wrong { procedure }
    } else if driven.faults.lost == 0 {
        RoundTripError::Faulty { procedure, faults }
    } else if caller.is_connected() {
        RoundTripError::Unanswered { procedure }
    } else {
        RoundTripError::Closed
    }
}

/// One call after the other from now on, without an end.
fn load(batch: u64, operations_max: u64) -> Load {
    Load {
        outstanding: 1,
        batch,
        window: Window {
            start_ns: monotonic_ns(),
            end_ns: u64::MAX / 2,
        },
        operations_max,
    }
}

/// Drives until something ends it; returns whether `report` wants more.
fn drive_on(
    caller: &mut Caller,
    leave: &Leave,
    load: &Load,
    report: &mut dyn FnMut(f64) -> bool,
) -> Result<(Driven, bool), WorkerError> {
    let goes_on = Cell::new(true);
    let mut guest = Guest {
        caller,
        leave,
        goes_on: &goes_on,
        stopped: false,
    };
    let driven = drive(&mut guest, load, &mut |average_ms| {
        goes_on.set(report(average_ms));
    })?;
    Ok((driven, goes_on.get()))
}

/// A caller that stops at a leave request, at the first wrong answer, and when `report` has enough.
struct Guest<'a> {
    caller: &'a mut Caller,
    leave: &'a Leave,
    goes_on: &'a Cell<bool>,
    stopped: bool,
}

impl Exchange for Guest<'_> {
    fn push(&mut self) -> Result<(), WorkerError> {
        self.caller.push()
    }

    fn flush(&mut self) -> Result<(), WorkerError> {
        self.caller.flush()
    }

    fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<Option<Instant>, WorkerError> {
        let received = self.caller.receive(answers)?;
        if answers.iter().any(|answer| *answer != Answer::Right) {
            self.stopped = true;
        }
        Ok(received)
    }

    fn faults(&self) -> Faults {
        self.caller.faults()
    }

    fn traffic(&self) -> Traffic {
        self.caller.traffic()
    }

    fn is_over(&self) -> bool {
        self.stopped || self.leave.is_wished() || !self.goes_on.get()
    }
}
