//! Calls without answers: many at once, and some with large arguments.

use std::time::Duration;

use crosstie_wamp::{CallOptions, Message, Payload, RequestId, Value};

use super::readers::Readers;
use super::{Answers, register};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;

const PROCEDURE: &str = "crosstie.hostile.procedure";
const CALLERS: usize = 100;
/// The default maximum of one session.
const OF_A_CALLER: usize = 10_000;

const PROGRESSIVE: usize = 200;
const OPTION_BYTES: usize = 8 << 20;

/// Pending calls, and a callee that leaves.
pub(in crate::hostile) fn pending(strike: &mut Strike) -> Result<(), WorkerError> {
    let mut callee = strike.session()?;
    register(&mut callee, PROCEDURE)?;
    let callee = [callee];
    let invoked = Readers::start(&callee)?;
    let mut callers = Vec::new();
    let calls = strike.size(OF_A_CALLER);
    for _ in 0..strike.few(CALLERS) {
        let mut caller = strike.session()?;
        for number in 1..=calls as u64 {
            caller.push(&call(number, CallOptions::default()))?;
        }
        caller.flush()?;
        callers.push(caller);
        if strike.is_over() {
            break;
        }
    }
    invoked.await_silence(strike.deadline);
    strike.made("calls", (callers.len() * calls) as u64);
    let answered = Readers::start(&callers)?;
    drop(invoked);
    drop(callee);
    answered.await_silence(strike.deadline);
    if answered.finish().closed > 0 {
        strike.refused("a caller was closed");
    }
    Ok(())
}

/// Calls whose arguments are incomplete, with options that the router forwards.
pub(in crate::hostile) fn options(strike: &mut Strike) -> Result<(), WorkerError> {
    let mut callee = strike.session()?;
    register(&mut callee, PROCEDURE)?;
    let callee = [callee];
    let invoked = Readers::start(&callee)?;
    let mut caller = strike.session()?;
    let calls = strike.few(PROGRESSIVE);
    let value = Value::String("x".repeat(OPTION_BYTES));
    for number in 1..=calls as u64 {
        let options = CallOptions {
            progress: true,
            passthru: Some(Box::new(vec![("_x".to_owned(), value.clone())])),
            ..CallOptions::default()
        };
        caller.push(&call(number, options))?;
        caller.flush()?;
        if strike.is_over() {
            break;
        }
    }
    invoked.await_silence(strike.deadline);
    let refused = Answers::waiting(&mut caller)?;
    strike.made("calls", calls as u64);
    refused.note_refusals(strike);
    // Pinned memory has to be visible for a while.
    std::thread::sleep(Duration::from_secs(1).min(strike.left()));
    Ok(())
}

fn call(number: u64, options: CallOptions) -> Message<'static> {
    Message::Call {
        request: RequestId(number),
        options,
        procedure: PROCEDURE.into(),
        payload: Payload::EMPTY,
    }
}
