//! A delay line as a process of a bench.

use std::io;
use std::process::{Command, Stdio};

use crosstie_wan::{Endpoint, Link, LinkOptions, Summary};
use serde::{Deserialize, Serialize};

use crate::process::{WorkerError, descriptors, say};

pub(crate) const ROLE: &str = "link";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LinkOrder {
    pub listen: Endpoint,
    pub server: Endpoint,
    pub options: LinkOptions,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum LinkReport {
    /// It listens there.
    Ready {
        endpoint: Endpoint,
        /// Whether it has real-time priority.
        realtime: bool,
    },
    /// The end was requested.
    Carried(Summary),
}

/// A bench keeps its processors busy, and a process that wakes then waits for the next tick of the scheduler,
/// milliseconds later. A network does not compete with its ends, so a delay line requests real-time priority; it gets
/// that as root with util-linux installed.
fn take_priority() -> bool {
    Command::new("chrt")
        .args(["--rr", "--pid", "10", &std::process::id().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Carries until the bench closes this worker's standard input.
pub(crate) fn work(order: LinkOrder) -> Result<(), WorkerError> {
    descriptors::raise();
    let link = Link::bind(&order.listen, &order.server, &order.options)?;
    say(&LinkReport::Ready {
        endpoint: link.endpoint().clone(),
        realtime: take_priority(),
    });
    // A fault shows in the bench's own counts.
    let statistics = link.run(io::stdin(), &mut |_| {})?;
    say(&LinkReport::Carried(statistics.summary()));
    Ok(())
}
