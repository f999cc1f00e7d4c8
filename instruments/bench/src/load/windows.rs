//! A driver that measures one window after the other.

use std::io;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Latencies, Recorded};
use crate::machine::accounting::own_cpu_ns;
use crate::process::{Driver, WorkerError, instruction, say};

/// The results of one window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Operations, by their number of times.
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    pub(crate) times: Recorded,
    /// This process's processor time for it.
    pub(crate) cpu_ns: u64,
}

/// Measures windows on command; `window` gets the length of each, and its end.
pub(crate) fn in_windows(
    mut window: impl FnMut(f64, Instant) -> Result<Latencies, WorkerError>,
) -> Result<(), WorkerError> {
    say(&Driver::<Found>::Ready);
    while let Some(seconds) = instruction::<f64>()? {
        let (begun, cpu_ns) = (Instant::now(), own_cpu_ns());
        let times = window(seconds, begun + Duration::from_secs_f64(seconds))?;
        say(&Driver::Found(Found {
            count: times.count(),
            seconds: begun.elapsed().as_secs_f64(),
            times: times.recorded(),
            cpu_ns: own_cpu_ns() - cpu_ns,
        }));
    }
    Ok(())
}

/// The times of all clients, each with a thread of its own.
pub(crate) fn of_all<'s>(
    clients: impl IntoIterator<Item = ScopedJoinHandle<'s, Result<Latencies, WorkerError>>>,
) -> Result<Latencies, WorkerError> {
    let mut sum = Latencies::default();
    for client in clients {
        let times = client.join();
        let times = times.map_err(|_| io::Error::other("a client panicked"))??;
        sum.add(&times.recorded());
    }
    Ok(sum)
}
