//! Drains: the clients of a running node leave, and new ones are led elsewhere.
//!
//! ```text
//! `crossbar.drain` ─▶ grace: `/ready` answers 503 ─▶ listeners close, clients leave in slices ─▶ drained
//!                       `crossbar.undrain` at any time ─▶ listeners open again
//! ```

mod state;

use std::time::{Duration, Instant};

use serde_json::json;
use tracing::{info, warn};

pub(crate) use self::state::Drain;
use self::state::Phase;
use crate::event::Event;
use crate::management::errors::{self, Refusal};
use crate::management::{Answer, Reply};
use crate::node::Node;

/// The interval of slices.
const TICK: Duration = Duration::from_millis(100);

impl Node {
    /// Begins a drain, or joins the present one.
    pub(crate) fn drain(&mut self, grace: Duration, over: Duration, reply: Reply) {
        if self.is_ending() {
            return answer(reply, Err(errors::ending()));
        }
        if let Some(drain) = &mut self.drain {
            return match drain.phase {
                Phase::Drained => answer(reply, Ok(drain.told())),
                _ => drain.waiting.push(reply),
            };
        }
        self.drains += 1;
        let number = self.drains;
        self.drain = Some(Drain {
            number,
            over,
            phase: Phase::Grace,
            clients: 0,
            waiting: vec![reply],
        });
        for router in self.routers() {
            router.set_draining(true);
        }
        info!(
            "Draining: /ready answers 503, and listeners close in {} ms",
            grace.as_millis()
        );
        self.send_after(grace, Event::DrainDue(number));
    }

    /// The next step of a drain.
    pub(crate) fn handle_drain_due(&mut self, number: u64) {
        if self.is_ending() {
            return;
        }
        let Some(mut drain) = self.drain.take_if(|drain| drain.number == number) else {
            return;
        };
        let is_over = match drain.phase {
            Phase::Grace => {
                let routers = self.routers();
                drain.clients = routers.iter().map(|router| router.close_for_drain()).sum();
                let (clients, over_ms) = (drain.clients, drain.over.as_millis());
                info!(
                    "Draining: listeners are closed; clients leave within {over_ms} ms: {clients}"
                );
                let since = Instant::now();
                drain.phase = Phase::Leaving { since };
                false
            }
            Phase::Leaving { since } => {
                let share = match drain.over.is_zero() {
                    true => 1.0,
                    false => since.elapsed().as_secs_f64() / drain.over.as_secs_f64(),
                };
                let routers = self.routers();
                let left: usize = routers.iter().map(|router| router.dismiss(share)).sum();
                left == 0 && share >= 1.0
            }
            Phase::Drained => return self.drain = Some(drain),
        };
        if is_over {
            info!("Drained: no client is left, of {}", drain.clients);
            drain.phase = Phase::Drained;
            let told = drain.told();
            let waiting = drain.waiting.drain(..);
            waiting.for_each(|reply| answer(reply, Ok(told.clone())));
        } else {
            self.send_after(TICK, Event::DrainDue(number));
        }
        self.drain = Some(drain);
    }

    /// Undoes a drain. Returns the transports that cannot be opened again; another call tries these again.
    pub(crate) fn undrain(&mut self) -> Answer {
        let drain = self.drain.take();
        let mut outcomes = Vec::new();
        for router in self.routers() {
            router.set_draining(false);
            outcomes.extend(router.reopen());
        }
        if drain.is_none() && outcomes.is_empty() {
            return Err(errors::not_running("the node does not drain"));
        }
        let undone = || errors::not_running("the drain was undone");
        let waiting = drain.into_iter().flat_map(|drain| drain.waiting);
        waiting.for_each(|reply| answer(reply, Err(undone())));
        let troubles = outcomes.into_iter().filter_map(Result::err);
        let troubles: Vec<_> = troubles.map(|trouble| trouble.to_string()).collect();
        for trouble in &troubles {
            warn!("The drain is undone, but {trouble}");
        }
        if troubles.is_empty() {
            info!("The drain is undone: listeners are open");
        }
        Ok(json!({"troubles": troubles}))
    }

    /// Refuses what would open listeners during a drain.
    pub(crate) fn check_not_draining(&self) -> Result<(), Refusal> {
        match self.drain.is_some() {
            true => Err(errors::cannot_start(
                "the node drains; `crosstie undrain` ends that",
            )),
            false => Ok(()),
        }
    }
}

fn answer(reply: Reply, answer: Answer) {
    // The caller may have gone.
    let _ = reply.send(answer);
}
