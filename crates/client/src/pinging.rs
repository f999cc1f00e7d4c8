//! Is the router still there?

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Finds out whether the router is still there.
pub(crate) struct Pinging {
    ticks: Option<Interval>,
    period: Duration,
    heard: bool,
    pinged: bool,
}

impl Pinging {
    pub(crate) fn new(period: Option<Duration>) -> Self {
        let period = period.filter(|period| !period.is_zero());
        let ticks = period.map(|period| {
            let mut ticks = interval_at(Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        Self {
            ticks,
            period: period.unwrap_or_default(),
            heard: false,
            pinged: false,
        }
    }

    pub(crate) fn heard(&mut self) {
        self.heard = true;
    }

    /// Ends when it is time to ping; with how long the router was silent after the last ping,
    /// if it was.
    pub(crate) async fn tick(&mut self) -> Option<Duration> {
        let Some(ticks) = &mut self.ticks else {
            return std::future::pending().await;
        };
        ticks.tick().await;
        let silent = self.pinged && !self.heard;
        self.heard = false;
        self.pinged = true;
        silent.then_some(self.period)
    }
}
