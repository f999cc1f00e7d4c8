//! The client processes as the bench sees them: a batch is divided among them, and they are polled together.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use super::Plan;
use super::client::{ClientOrder, ClientReport, Instruction, PATIENCE, ROLE};
use super::subjects::Subject;
use crate::error::BenchError;
use crate::process::Workers;

/// How long a client may take for an instruction beyond its own time limit.
const CLIENT_PATIENCE: Duration = Duration::from_secs(30);

/// The client processes. One that has failed gets no further instructions.
pub(super) struct Clients {
    workers: Workers<ClientReport>,
    failed: Vec<bool>,
    /// The client that gets the first remainder of a division.
    turn: usize,
}

impl Clients {
    pub(super) fn start(
        plan: &Plan<'_>,
        subject: &Subject,
        sources: &[Ipv4Addr],
    ) -> Result<Self, BenchError> {
        let mut clients = Self {
            workers: Workers::default(),
            failed: vec![false; plan.clients],
            turn: 0,
        };
        let place = plan.site.network.client_place(&plan.site.allowed);
        for at in 0..plan.clients {
            let order = ClientOrder {
                endpoint: subject.endpoint.clone(),
                source: sources.iter().copied().cycle().nth(at),
            };
            clients
                .workers
                .start(&plan.site.executable, ROLE, &place, &order)?;
        }
        for (at, ready) in clients.collect(|report| (report == ClientReport::Ready).then_some(())) {
            let fail = |why| BenchError::Holder(format!("client {}: {why}", at + 1));
            ready.map_err(fail)?;
        }
        Ok(clients)
    }

    /// Divides a batch, and waits until all connections are started.
    pub(super) fn open(&mut self, count: usize) -> Result<(), String> {
        let clients = self.failed.len();
        for at in 0..clients {
            let count = share(count, clients, self.turn, at);
            self.workers.tell(at, &Instruction::Open { count });
        }
        self.turn = (self.turn + count) % clients;
        let created = self.collect(|report| (report == ClientReport::Created).then_some(()));
        created.into_iter().try_for_each(|(_, outcome)| outcome)
    }

    /// Sends one instruction to all, and collects their reports.
    pub(super) fn ask<T>(
        &mut self,
        instruction: Instruction,
        expected: fn(ClientReport) -> Option<T>,
    ) -> Vec<(usize, Result<T, String>)> {
        for at in 0..self.failed.len() {
            self.workers.tell(at, &instruction);
        }
        self.collect(expected)
    }

    pub(super) fn processes(&self) -> Vec<u32> {
        self.workers.processes()
    }

    fn collect<T>(
        &mut self,
        expected: impl Fn(ClientReport) -> Option<T>,
    ) -> Vec<(usize, Result<T, String>)> {
        let deadline = Instant::now() + PATIENCE + CLIENT_PATIENCE;
        let mut waited_for = self.failed.iter().filter(|failed| !**failed).count();
        let mut said = Vec::new();
        while waited_for > 0 {
            let (at, outcome) = match self.workers.next(deadline) {
                Ok(Some((at, report))) => {
                    let text = format!("{report:?} was not expected");
                    (at, expected(report).ok_or(text))
                }
                Ok(None) => {
                    let seconds = (PATIENCE + CLIENT_PATIENCE).as_secs();
                    let why = format!("{waited_for} client(s) were silent for {seconds} s");
                    said.push((0, Err(why)));
                    break;
                }
                Err(failed) => (failed.at, Err(failed.why)),
            };
            waited_for -= 1;
            self.failed[at] |= outcome.is_err();
            said.push((at, outcome));
        }
        said
    }
}

/// One client's share of a batch. Remainders rotate among the clients, so that in the end all have the same.
fn share(count: usize, clients: usize, turn: usize, at: usize) -> usize {
    let early = (at + clients - turn) % clients < count % clients;
    count / clients + usize::from(early)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn batches_are_shared_out() {
        #[track_caller]
        fn check(count: usize, clients: usize, turn: usize, expected: &[usize]) {
            let shares: Vec<usize> = (0..clients)
                .map(|at| share(count, clients, turn, at))
                .collect();
            assert_eq!(shares, expected);
            assert_eq!(shares.iter().sum::<usize>(), count);
        }
        check(1_000, 4, 0, &[250, 250, 250, 250]);
        check(10, 4, 0, &[3, 3, 2, 2]);
        check(10, 4, 2, &[2, 2, 3, 3]);
        check(10, 4, 3, &[3, 2, 2, 3]);
        check(1, 3, 2, &[0, 0, 1]);
        check(0, 3, 1, &[0, 0, 0]);
    }
}
