//! Ctrl-C: a bench ends early, and tells what it has found.

use std::process::ExitCode;

use crosstie_bench::Stop;

use crate::signals::{INTERRUPTED, end_in_good_order};

/// The first signal ends a run in good order, a second one at once.
pub(super) fn stop_at_a_signal() -> anyhow::Result<Stop> {
    let stop = Stop::default();
    let heard = stop.clone();
    end_in_good_order(move |name| {
        complain!("crosstie: {name}: ending with what was found until now");
        heard.wish();
    })?;
    Ok(stop)
}

/// How a bench ended.
pub(super) fn ended(stop: &Stop, valid: bool) -> ExitCode {
    match stop.is_wished() {
        true => ExitCode::from(INTERRUPTED),
        false => super::counts(valid),
    }
}
