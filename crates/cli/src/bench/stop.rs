//! Ctrl-C: a bench ends early, and tells what it has found.

use std::process::ExitCode;
use std::thread;

use crosstie_bench::stop::Stop;

use crate::signals::Signals;

/// As shells have it for what SIGINT ended.
const INTERRUPTED: u8 = 130;

/// The first signal ends a run in good order, a second one at once.
pub(super) fn stop_at_a_signal() -> anyhow::Result<Stop> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut signals = {
        let _context = runtime.enter();
        Signals::catch()?
    };
    let stop = Stop::default();
    let heard = stop.clone();
    thread::spawn(move || {
        runtime.block_on(async {
            let name = signals.next().await;
            complain!("crosstie: {name}: ending with what was found until now");
            heard.wish();
            signals.next().await;
            std::process::exit(INTERRUPTED.into());
        });
    });
    Ok(stop)
}

/// How a bench ended.
pub(super) fn ended(stop: &Stop, valid: bool) -> ExitCode {
    match stop.is_wished() {
        true => ExitCode::from(INTERRUPTED),
        false => super::counts(valid),
    }
}
