//! The cores of the router and its clients. On a small virtual machine a wake-up across cores costs ten times a switch
//! on one, so a figure is meaningless without them.

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::BenchError;
use crate::machine::tasks;
use crate::subject::names;

/// The three placements of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Placement {
    /// Router, callee and caller all on one core.
    SameCore,
    /// The router on the first core (one per thread, if there are enough), its clients beside it.
    Split,
    /// Placed by the scheduler. The result changes with the machine's load: never a goal's basis.
    Free,
}

names! {
    Placement { SameCore = "same-core", Split = "split", Free = "free" }
    "a placement is same-core, split or free"
}

/// The cores that a placement assigns to each side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    pub router: Vec<usize>,
    pub clients: Vec<usize>,
}

impl Placement {
    /// Assigns `allowed`. `None` if these are too few for this placement.
    pub(crate) fn cores(
        self,
        allowed: &[usize],
        router_threads: usize,
        pairs: usize,
    ) -> Option<Cores> {
        let first = *allowed.first()?;
        match self {
            Self::SameCore => Some(Cores {
                router: vec![first],
                clients: vec![first],
            }),
            Self::Free => Some(Cores {
                router: allowed.to_vec(),
                clients: allowed.to_vec(),
            }),
            Self::Split if allowed.len() < 2 => None,
            Self::Split => {
                let (router, rest) = allowed.split_at(router_threads.clamp(1, allowed.len() - 1));
                // One caller and one callee take turns, so a second core would only add the wake-ups between them; many
                // pairs may use all cores that the router leaves.
                let clients = if pairs == 1 { &rest[..1] } else { rest };
                Some(Cores {
                    router: router.to_vec(),
                    clients: clients.to_vec(),
                })
            }
        }
    }
}

/// The cores that this thread may use.
pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
    Ok(cores_of(&sched_getaffinity(None)?))
}

/// The cores that another process's first thread may use.
pub(crate) fn affinity(process: u32) -> io::Result<Vec<usize>> {
    let process =
        Pid::from_raw(process.cast_signed()).ok_or_else(|| io::Error::other("0 is no process"))?;
    Ok(cores_of(&sched_getaffinity(Some(process))?))
}

fn cores_of(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU)
        .filter(|core| set.is_set(*core))
        .collect()
}

/// Binds the calling thread; threads and processes that it starts inherit this.
pub(crate) fn bind_this_thread(cores: &[usize]) -> io::Result<()> {
    Ok(sched_setaffinity(None, &cpu_set(cores))?)
}

/// Binds every thread of running processes. One that ends meanwhile is not an error.
pub(crate) fn bind_processes(processes: &[u32], cores: &[usize]) -> io::Result<()> {
    let set = cpu_set(cores);
    for process in processes {
        for task in tasks(*process)? {
            match sched_setaffinity(Pid::from_raw(task.cast_signed()), &set) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Processes that ran before the bench and go on after it. Dropping this restores the cores of each of their threads.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    processes: Vec<u32>,
    /// The cores of each process's first thread.
    affinities: Vec<(u32, Vec<usize>)>,
    /// Those of each thread, as a server may bind them itself.
    threads: Vec<(u32, Vec<usize>)>,
}

impl Moved {
    /// Reads their current cores; `option` is the option by which the user named them.
    pub(crate) fn find(processes: &[u32], option: &str) -> Result<Self, BenchError> {
        let mut found = Self::default();
        for process in processes {
            let cores = affinity(*process).map_err(|error| {
                BenchError::Options(format!(
                    "{option} {process}: there is no such process to be looked at ({error})"
                ))
            })?;
            found.processes.push(*process);
            found.affinities.push((*process, cores));
            for thread in tasks(*process)? {
                // A thread that ends meanwhile needs no restoration.
                if let Ok(cores) = affinity(thread) {
                    found.threads.push((thread, cores));
                }
            }
        }
        Ok(found)
    }

    pub(crate) fn processes(&self) -> &[u32] {
        &self.processes
    }

    pub(crate) fn bind(&self, cores: &[usize]) -> io::Result<()> {
        bind_processes(&self.processes, cores)
    }
}

impl Drop for Moved {
    fn drop(&mut self) {
        // They may have ended meanwhile, and need no restoration then.
        for (process, cores) in &self.affinities {
            // Threads that began meanwhile started on the cores that the bench assigned to their parents.
            let _ = bind_processes(&[*process], cores);
        }
        for (thread, cores) in &self.threads {
            let thread = Pid::from_raw(thread.cast_signed());
            let _ = sched_setaffinity(thread, &cpu_set(cores));
        }
    }
}

fn cpu_set(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_dealt_out() {
        #[track_caller]
        fn check(
            placement: Placement,
            allowed: &[usize],
            threads: usize,
            pairs: usize,
            expected: Option<(&[usize], &[usize])>,
        ) {
            let expected = expected.map(|(router, clients)| Cores {
                router: router.into(),
                clients: clients.into(),
            });
            assert_eq!(placement.cores(allowed, threads, pairs), expected);
        }
        check(Placement::SameCore, &[2, 3], 1, 1, Some((&[2], &[2])));
        check(Placement::Split, &[0, 1], 1, 1, Some((&[0], &[1])));
        check(Placement::Split, &[0, 1], 2, 8, Some((&[0], &[1])));
        check(
            Placement::Split,
            &[0, 1, 2, 3],
            2,
            8,
            Some((&[0, 1], &[2, 3])),
        );
        check(Placement::Split, &[0, 1, 2, 3], 1, 1, Some((&[0], &[1])));
        check(Placement::Split, &[5], 1, 1, None);
        check(Placement::Free, &[0, 1], 1, 1, Some((&[0, 1], &[0, 1])));
        check(Placement::SameCore, &[], 1, 1, None);
    }

    #[test]
    fn moved_processes_get_their_cores_back() {
        let before = allowed_cores().unwrap();
        let mut sleeper = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let moved = Moved::find(&[sleeper.id()], "--pid").unwrap();
        moved.bind(&before[..1]).unwrap();
        assert_eq!(affinity(sleeper.id()).unwrap(), before[..1]);
        drop(moved);
        assert_eq!(affinity(sleeper.id()).unwrap(), before);
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        let gone = Moved::find(&[u32::MAX >> 1], "--pid").unwrap_err();
        assert!(gone.to_string().starts_with("--pid 2147483647: "));
    }
}
