//! The callee: what it is called with, it answers with.

use super::leave::later;
use super::waiting::connected;
use super::{EndOptions, RoundTripError};
use crate::wamp::callee::{Callee, Ending};

/// Serves until told to leave, or until the router leaves. `ready` is run once the procedure is
/// registered.
pub fn callee(options: &EndOptions, ready: impl FnOnce()) -> Result<(), RoundTripError> {
    let order = options.order();
    let Some(mut callee) = connected(&options.leave, || Callee::register(&order))? else {
        return Ok(());
    };
    let (leaver, breaker) = (callee.leaver()?, callee.breaker()?);
    options.leave.prepare(move || {
        leaver();
        later(breaker);
    });
    ready();
    match callee.serve() {
        Ok(served) => match served.ending {
            Ending::Goodbye(_) => Ok(()),
            Ending::Closed if options.leave.is_wished() => Ok(()),
            Ending::Closed => Err(RoundTripError::Closed),
        },
        // The connection went while GOODBYE was on its way.
        Err(_) if options.leave.is_wished() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
