//! Liveness of the router, by pings.

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Detects a router that does not answer.
pub(crate) struct Keepalive {
    ticks: Option<Interval>,
    period: Duration,
    heard: bool,
    pinged: bool,
}

impl Keepalive {
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

    /// Returns when it is time to ping; with the length of the silence if the last ping was not answered.
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
