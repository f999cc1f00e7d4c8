//! The memory of processes, sampled during an attack.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::machine::accounting::kib_field;

/// Interval of samples. Shorter peaks are not seen.
const INTERVAL: Duration = Duration::from_millis(10);

pub(super) struct Watch {
    processes: Vec<u32>,
    before: Option<u64>,
    most: Arc<AtomicU64>,
    finishing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The samples' result, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) before: u64,
    pub(super) most: u64,
    pub(super) after: u64,
}

impl Watch {
    pub(super) fn start(processes: &[u32]) -> Self {
        let most = Arc::new(AtomicU64::new(0));
        let finishing = Arc::new(AtomicBool::new(false));
        let thread = {
            let (processes, most, finishing) = (
                processes.to_vec(),
                Arc::clone(&most),
                Arc::clone(&finishing),
            );
            thread::spawn(move || {
                while !finishing.load(Ordering::Relaxed) {
                    most.fetch_max(resident(&processes).unwrap_or(0), Ordering::Relaxed);
                    thread::sleep(INTERVAL);
                }
            })
        };
        Self {
            before: resident(processes),
            processes: processes.to_vec(),
            most,
            finishing,
            thread: Some(thread),
        }
    }

    /// The result; `None` if the processes are unknown.
    pub(super) fn finish(self) -> Option<Memory> {
        let before = self.before?;
        let after = resident(&self.processes).unwrap_or(0);
        let most = self.most.load(Ordering::Relaxed).max(before).max(after);
        Some(Memory {
            before,
            most,
            after,
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.finishing.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Resident bytes of all of them together; `None` without any.
fn resident(processes: &[u32]) -> Option<u64> {
    let of = |process: &u32| {
        let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        kib_field(&text, "VmRSS:")
    };
    let found: Vec<u64> = processes.iter().filter_map(of).collect();
    (!found.is_empty()).then(|| found.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory() {
        let memory = Watch::start(&[std::process::id()]).finish().unwrap();
        assert!(memory.before > 0 && memory.most >= memory.before.max(memory.after));
        assert_eq!(Watch::start(&[]).finish(), None);
    }
}
