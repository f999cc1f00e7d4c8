//! Limits of descriptors and ports per process, the number of processes that follows, and the limits to raise.

use crate::error::BenchError;
use crate::process::descriptors;
use crate::report::table::thousands;

/// Descriptors that are not connections: standard streams, listeners, epoll and the like.
const DESCRIPTORS_SPARE: usize = 64;

/// The kernel distributes connections randomly among processes that share a port, and a client's ports may be in use:
/// no process is planned to be quite full.
const FILL: f64 = 0.85;

/// The limits of one process here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) descriptors: usize,
    /// From one address to one server.
    pub(super) ports: usize,
}

impl Limits {
    /// This process's limits, raised to the hard limits.
    pub(super) fn here(ports: usize) -> Self {
        Self {
            descriptors: descriptors::raise(),
            ports,
        }
    }

    fn connections(self) -> usize {
        self.descriptors.saturating_sub(DESCRIPTORS_SPARE)
    }

    /// Number of server processes for so many connections.
    pub(super) fn workers(self, connections: usize) -> usize {
        needed(connections, self.connections())
    }

    /// Number of client processes, each with an address of its own.
    pub(super) fn clients(self, connections: usize) -> usize {
        needed(connections, self.connections().min(self.ports))
    }

    /// Refuses more than the delay line can carry: it is one process, with both ends of each connection.
    pub(super) fn check_link(self, connections: usize) -> Result<(), BenchError> {
        let carried = self.connections() / 2;
        match connections <= carried {
            true => Ok(()),
            false => Err(BenchError::Options(format!(
                "a link carries {} connections where a process may have {} descriptors: open \
                 fewer, or leave --link out",
                thousands(carried as f64),
                thousands(self.descriptors as f64),
            ))),
        }
    }

    /// Refuses too few processes for so many connections, and names the limit to raise.
    pub(super) fn check(
        self,
        what: &str,
        option: &str,
        given: usize,
        connections: usize,
    ) -> Result<(), BenchError> {
        let per_process = self.connections();
        if given * per_process >= connections {
            return Ok(());
        }
        Err(BenchError::Options(format!(
            "{} connections are too many for {given} {what}: a process may have {} descriptors \
             here. Use {option} {}, or raise the limit: ulimit -Hn {} as root, LimitNOFILE= of a \
             systemd unit, or nofile in /etc/security/limits.conf",
            thousands(connections as f64),
            thousands(self.descriptors as f64),
            self.workers(connections),
            connections.div_ceil(given.max(1)) + DESCRIPTORS_SPARE,
        )))
    }
}

fn needed(connections: usize, per_process: usize) -> usize {
    let planned = (per_process as f64 * FILL) as usize;
    connections.div_ceil(planned.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limits = Limits {
        descriptors: 20_000,
        ports: 28_232,
    };

    #[test]
    fn processes_are_enough() {
        #[track_caller]
        fn check(limits: Limits, connections: usize, workers: usize, clients: usize) {
            assert_eq!(limits.workers(connections), workers);
            assert_eq!(limits.clients(connections), clients);
        }
        check(SMALL, 60_000, 4, 4);
        check(SMALL, 1_000, 1, 1);
        check(SMALL, 0, 1, 1);
        let large = Limits {
            descriptors: 1_000_000,
            ..SMALL
        };
        check(large, 60_000, 1, 3);
    }

    #[test]
    fn a_link_carries_half() {
        assert!(SMALL.check_link(9_968).is_ok());
        let refused = SMALL.check_link(9_969).unwrap_err().to_string();
        assert!(refused.contains("a link carries 9,968"), "{refused}");
    }

    #[test]
    fn too_few_processes_are_refused_with_the_limit_to_raise() {
        assert!(SMALL.check("workers", "--workers", 4, 60_000).is_ok());
        let refused = SMALL.check("workers", "--workers", 2, 60_000).unwrap_err();
        let text = refused.to_string();
        for part in ["20,000 descriptors", "--workers 4", "ulimit -Hn 30064"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
