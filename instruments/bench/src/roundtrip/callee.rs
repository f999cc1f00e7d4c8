//! The callee: it returns its arguments.

use super::leave::later;
use super::wait::connected;
use super::{EndOptions, RoundTripError};
use crate::wamp::callee::{Callee, Ending};

/// Serves until a leave request, or until the router leaves. `ready` is called once the procedure is registered.
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
        // The connection was lost while GOODBYE was in transit.
        Err(_) if options.leave.is_wished() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
