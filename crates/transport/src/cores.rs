//! Binding threads to cores.

use std::io;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A set of the machine's cores, by the kernel's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores(CpuSet);

impl Cores {
    /// The cores of these numbers. Only binding a thread shows whether they exist and may be used.
    pub fn new(numbers: &[usize]) -> io::Result<Self> {
        let mut cores = CpuSet::new();
        let beyond: Vec<_> = numbers
            .iter()
            .copied()
            .filter(|number| *number >= CpuSet::MAX_CPU)
            .collect();
        if !beyond.is_empty() {
            return Err(unusable(&beyond));
        }
        numbers.iter().for_each(|number| cores.set(*number));
        Ok(Self(cores))
    }

    /// The number of cores.
    pub fn count(&self) -> usize {
        self.0.count() as usize
    }

    /// Restricts this thread, and threads that it starts from now on, to these cores.
    pub(crate) fn bind(&self) -> io::Result<()> {
        // The kernel silently leaves out those of several cores that may not be used.
        let may_use = |number: &usize| {
            let mut alone = CpuSet::new();
            alone.set(*number);
            sched_setaffinity(None, &alone)
        };
        let before = sched_getaffinity(None)?;
        let mut refused = Vec::new();
        for number in (0..CpuSet::MAX_CPU).filter(|number| self.0.is_set(*number)) {
            match may_use(&number) {
                Ok(()) => {}
                Err(Errno::INVAL) => refused.push(number),
                Err(e) => return Err(e.into()),
            }
        }
        if !refused.is_empty() {
            sched_setaffinity(None, &before)?;
            return Err(unusable(&refused));
        }
        Ok(sched_setaffinity(None, &self.0)?)
    }
}

fn unusable(numbers: &[usize]) -> io::Error {
    let usable = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    let usable: Vec<_> = (0..CpuSet::MAX_CPU)
        .filter(|number| usable.is_set(*number))
        .collect();
    let text = format!(
        "cores {} do not exist or may not be used; this process uses {}",
        listed(numbers),
        listed(&usable)
    );
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

fn listed(numbers: &[usize]) -> String {
    let numbers: Vec<_> = numbers.iter().map(usize::to_string).collect();
    numbers.join(", ")
}
