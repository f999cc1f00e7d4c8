//! The window of a round: after the start signal a moment, the warm-up, and the measured time.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::options::Common;
use super::site::Stage;
use crate::load::{drive, monotonic_ns};
use crate::machine::{Usage, Used};
use crate::process::{Driver, Workers};

/// From the start signal until the warm-up begins: time for the signal to reach all processes.
const COUNTDOWN: Duration = Duration::from_millis(5);

/// A future window, by the bench's clock and by its drivers'.
pub(crate) struct Ahead {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// The window as sent to drivers.
    pub(crate) window: drive::Window,
}

impl Ahead {
    pub(crate) fn of(warm_up: Duration, measured: Duration) -> Self {
        let ahead = COUNTDOWN + warm_up;
        let start = Instant::now() + ahead;
        let start_ns = monotonic_ns() + ahead.as_nanos() as u64;
        Self {
            start,
            end: start + measured,
            window: drive::Window {
                start_ns,
                end_ns: start_ns + measured.as_nanos() as u64,
            },
        }
    }
}

/// A fresh driver for one window.
pub(crate) struct Drive<'a> {
    pub(crate) stage: &'a Stage<'a>,
    pub(crate) common: &'a Common,
    pub(crate) role: &'static str,
    /// The subject's processes; without any its processor time stays unknown.
    pub(crate) processes: &'a [u32],
    /// How long the driver may take to start, and to end after its window.
    pub(crate) patience: Duration,
}

impl Drive<'_> {
    /// Runs it; returns the driver's results, and the usage by driver and subject in the window.
    pub(crate) fn run<F>(&self, order: &impl Serialize) -> Result<(F, Used), String>
    where
        F: DeserializeOwned + fmt::Debug + Send + 'static,
    {
        let site = self.stage.site;
        let mut driver = Workers::<Driver<F>>::default();
        driver
            .start(&site.executable, self.role, &self.stage.clients(), order)
            .map_err(|error| format!("the driver: {error}"))?;
        match driver.next_unless(&site.stop, Instant::now() + self.patience)? {
            Some((_, Driver::Ready)) => {}
            other => return Err(format!("expected a ready driver, got {other:?}")),
        }
        let (warm_up, measured) = (self.common.warm_up_seconds, self.common.seconds);
        let seconds = Duration::from_secs_f64;
        let ahead = Ahead::of(seconds(warm_up), seconds(measured));
        driver.tell(0, &ahead.window);
        let drivers = driver.processes();
        // On a busy machine the driver may be done before this process is woken.
        let mut found = None;
        let mut listen = |until: Instant| {
            while found.is_none() {
                match driver.next_unless(&site.stop, until)? {
                    Some((_, Driver::Found(finding))) => found = Some(finding),
                    Some((_, Driver::Ready)) => return Err("the driver was ready twice".to_owned()),
                    None => break,
                }
            }
            Ok(())
        };
        let mut usage_at = |moment: Instant| {
            listen(moment)?;
            thread::sleep(moment.saturating_duration_since(Instant::now()));
            Ok::<_, String>(Usage::now(self.processes, &drivers))
        };
        let before = usage_at(ahead.start)?;
        let used = usage_at(ahead.end)?.since(&before);
        listen(Instant::now() + self.patience)?;
        let finding = found.ok_or_else(|| "the driver did not finish".to_owned())?;
        Ok((finding, used))
    }
}
