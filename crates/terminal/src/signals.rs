//! SIGINT, SIGTERM, SIGHUP and SIGQUIT, which end a command in order; SIGHUP does not end a node.

use std::fs;
use std::future::pending;
use std::thread;

use anyhow::Context;
use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code in shells after SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Makes the first signal, passed to `first`, end a command in order, and a second one at once.
pub fn end_in_good_order(first: impl FnOnce(&'static str) + Send + 'static) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut signals = {
        let _context = runtime.enter();
        Signals::catch()?
    };
    thread::spawn(move || {
        runtime.block_on(async {
            first(signals.next().await);
            signals.next().await;
            std::process::exit(INTERRUPTED.into());
        });
    });
    Ok(())
}

/// Once made, signals do not kill the process, but wait to be read.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    quit: Option<Signal>,
    /// `None` if SIGHUP is ignored, or is no longer handled.
    hangup: Option<Signal>,
    /// The action of SIGHUP instead of ending the process.
    on_hangup: Option<Box<dyn Fn() + Send>>,
}

impl Signals {
    /// Needs a tokio context.
    pub fn catch() -> anyhow::Result<Self> {
        let interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
        let terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
        // A signal that nohup, or another starter, has the process ignore stays ignored.
        let ignored = ignored();
        let unless_ignored = |kind: SignalKind, number: Number| {
            let is_ignored = ignored >> (number.as_raw() - 1) & 1 == 1;
            let caught = (!is_ignored).then(|| signal(kind)).transpose();
            caught.with_context(|| format!("cannot catch signal {}", number.as_raw()))
        };
        Ok(Self {
            interrupt,
            terminate,
            quit: unless_ignored(SignalKind::quit(), Number::QUIT)?,
            hangup: unless_ignored(SignalKind::hangup(), Number::HUP)?,
            on_hangup: None,
        })
    }

    /// Like [`Signals::catch`], but SIGHUP ends nothing: each one calls `act`. It is handled under `nohup` too, because
    /// tools that rotate log files do not know how a daemon was started.
    pub fn catch_with_hangup(act: impl Fn() + Send + 'static) -> anyhow::Result<Self> {
        let hangup = signal(SignalKind::hangup()).context("cannot catch SIGHUP")?;
        Ok(Self {
            hangup: Some(hangup),
            on_hangup: Some(Box::new(act)),
            ..Self::catch()?
        })
    }

    /// The name of the next signal to end the process.
    pub async fn next(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return "SIGINT",
                _ = self.terminate.recv() => return "SIGTERM",
                () = next_of(&mut self.quit) => return "SIGQUIT",
                () = next_of(&mut self.hangup) => match &self.on_hangup {
                    Some(act) => act(),
                    None => {
                        // A closed terminal sends it more than once, which is not insistence. The handler stays.
                        self.hangup = None;
                        return "SIGHUP";
                    }
                }
            }
        }
    }
}

async fn next_of(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => pending().await,
    }
}

/// The signals that this process ignores, a bit for each; none if the system does not report them.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .map(str::trim);
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok())
        .unwrap_or_default()
}
