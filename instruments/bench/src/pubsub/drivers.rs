//! One subject with its subscribers and its publisher connected. They stay through all rounds: connecting is not
//! measured, and six thousand clients take their time.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::ledger::{Found, Since};
use super::publisher::{Published, PublisherOrder};
use super::round::{Round, judge};
use super::schedule::{Pace, Schedule};
use super::server::Server;
use super::subscribers::SubscribersOrder;
use super::worker::{DriverReport, Instruction, Order, ROLE};
use crate::load::monotonic_ns;
use crate::machine::{Memory, Usage};
use crate::process::{INTERRUPTED, Place, STOP_AFTER, Stop, Workers};

#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) executable: PathBuf,
    /// The publisher's.
    pub(super) server: Server,
    /// The subscribers', in turn.
    pub(super) subscribed: Vec<Server>,
    pub(super) clients: usize,
    pub(super) payload_bytes: usize,
    pub(super) acknowledge: bool,
    /// Whether there will be saturated runs; one subscriber is then the publisher's own.
    pub(super) gate: bool,
    pub(super) uprate: f64,
    /// Processes that share the subscribers.
    pub(super) processes: usize,
    pub(super) sources: Vec<Ipv4Addr>,
    pub(super) place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Load {
    pub(super) batch: u64,
    /// Batches per second; none: saturated, with so many publications in flight.
    pub(super) rate: Rate,
    pub(super) seconds: f64,
    pub(super) warm_up_seconds: f64,
    /// At any rate.
    pub(super) batches_min: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rate {
    Hz(f64),
    Saturated { outstanding: u64 },
}

impl Load {
    pub(super) fn schedule(&self, start_ns: u64, first: u64) -> Schedule {
        let (pace, warm_up_ns, measured_ns) = match self.rate {
            Rate::Saturated { outstanding } => (
                Pace::Saturated { outstanding },
                self.warm_up_seconds * 1e9,
                self.seconds * 1e9,
            ),
            Rate::Hz(hz) => {
                let period_ns = 1e9 / hz;
                let batches = ((self.seconds * hz).ceil() as u64)
                    .max(self.batches_min)
                    .max(1);
                let warm_up_batches = ((self.warm_up_seconds * hz).ceil() as u64).max(1);
                let pace = Pace::Timed {
                    period_ns,
                    batch: self.batch,
                    batches: warm_up_batches + batches,
                    warm_up_batches,
                };
                (
                    pace,
                    warm_up_batches as f64 * period_ns,
                    batches as f64 * period_ns,
                )
            }
        };
        let window_start_ns = start_ns + warm_up_ns as u64;
        Schedule {
            start_ns,
            first,
            pace,
            window_start_ns,
            window_end_ns: window_start_ns + measured_ns as u64,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Second {
    pub(super) sent: u64,
    pub(super) since: Since,
}

pub(super) trait Watcher {
    /// So many subscribers are connected.
    fn subscribed(&mut self, sessions: usize);
    /// A second of a run is over.
    fn second(&mut self, second: Second);
}

/// How long a process may be silent while it connects or finishes.
const PATIENCE: Duration = Duration::from_secs(20);

/// From the start signal until the first batch.
const COUNTDOWN_NS: u64 = 20_000_000;

/// Subscribers' processes are started first, the publisher after them.
pub(super) struct Drivers {
    workers: Workers<DriverReport>,
    groups: usize,
    clients: usize,
    /// The number of the next publication.
    next: u64,
    /// The reason why there can be no further run.
    broken: Option<String>,
    /// Whether a run had a fault.
    faulty: bool,
    /// Whether subscribers were closed.
    gone: bool,
}

/// A window that Ctrl-C ended counts from this length on, but not a whole one that is shorter.
const SECONDS_MIN: f64 = 1.0;

impl Drivers {
    /// Starts and connects all; the publisher comes last. `next` is its first number: above those of earlier drivers,
    /// whose late publications must not be mistaken for its own.
    pub(super) fn open(
        setup: &Setup,
        next: u64,
        watcher: &mut dyn Watcher,
        stop: &Stop,
    ) -> Result<Self, String> {
        let mut drivers = Self {
            workers: Workers::default(),
            groups: 0,
            clients: setup.clients,
            next,
            broken: None,
            faulty: false,
            gone: false,
        };
        for clients in shares(setup.clients - usize::from(setup.gate), setup.processes) {
            let order = Order::Subscribers(SubscribersOrder {
                servers: setup.subscribed.clone(),
                payload_bytes: setup.payload_bytes,
                clients,
                sources: setup.sources.clone(),
                ramp_ns: (setup.processes as f64 * 1e9 / setup.uprate) as u64,
            });
            drivers.start(setup, &order)?;
            drivers.groups += 1;
        }
        drivers.await_ready(drivers.groups, watcher, stop)?;
        let order = Order::Publisher(PublisherOrder {
            server: setup.server.clone(),
            payload_bytes: setup.payload_bytes,
            acknowledge: setup.acknowledge,
            source: setup.sources[0],
            gate: setup.gate,
        });
        drivers.start(setup, &order)?;
        drivers.await_ready(1, watcher, stop)?;
        Ok(drivers)
    }

    /// Whether an earlier run's fault would affect further runs.
    pub(super) fn is_damaged(&self) -> bool {
        self.gone || self.broken.is_some()
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    fn start(&mut self, setup: &Setup, order: &Order) -> Result<(), String> {
        self.workers
            .start(&setup.executable, ROLE, &setup.place, order)
            .map(|_| ())
            .map_err(|error| error.to_string())
    }

    fn await_ready(
        &self,
        mut count: usize,
        watcher: &mut dyn Watcher,
        stop: &Stop,
    ) -> Result<(), String> {
        let mut sessions = vec![0; self.groups.max(1)];
        let mut deadline = Instant::now() + PATIENCE;
        while count > 0 {
            if stop.is_wished() {
                return Err("interrupted while it was connecting".to_owned());
            }
            match self
                .workers
                .next(deadline.min(Instant::now() + STOP_AFTER))?
            {
                Some((_, DriverReport::Ready)) => count -= 1,
                Some((at, DriverReport::Subscribed { sessions: held })) => {
                    if let Some(of) = sessions.get_mut(at) {
                        *of = held;
                    }
                    watcher.subscribed(sessions.iter().sum());
                    deadline = Instant::now() + PATIENCE;
                }
                Some((_, other)) => return Err(format!("expected a ready worker, got {other:?}")),
                None if Instant::now() < deadline => {}
                None => return Err("no answer while it was connecting".to_owned()),
            }
        }
        Ok(())
    }

    /// One run; `subject` are the processes whose time is measured.
    pub(super) fn run(
        &mut self,
        load: &Load,
        subject: &[u32],
        watcher: &mut dyn Watcher,
        stop: &Stop,
    ) -> Result<Round, String> {
        if let Some(why) = &self.broken {
            return Err(why.clone());
        }
        let outcome = self.attempt(load, subject, watcher, stop);
        match &outcome {
            Ok(round) => self.faulty |= round.fault.is_some(),
            Err(why) => self.broken = Some(why.clone()),
        }
        outcome
    }

    fn attempt(
        &mut self,
        load: &Load,
        subject: &[u32],
        watcher: &mut dyn Watcher,
        stop: &Stop,
    ) -> Result<Round, String> {
        let schedule = load.schedule(monotonic_ns() + COUNTDOWN_NS, self.next);
        if let Pace::Timed { batch, batches, .. } = schedule.pace {
            // Until the publisher has reported its progress.
            self.next += batch * batches;
        }
        for at in 0..=self.groups {
            self.workers.tell(at, &Instruction::Go(schedule));
        }
        let drivers = self.workers.processes();
        let mut run = Run {
            watcher,
            workers: self.groups + 1,
            seconds: BTreeMap::new(),
            made: None,
            found: Vec::new(),
        };
        run.listen(&self.workers, instant_at(schedule.window_start_ns), stop)?;
        let before = Usage::now(subject, &drivers);
        run.listen(&self.workers, instant_at(schedule.window_end_ns), stop)?;
        let used = Usage::now(subject, &drivers).since(&before);
        let memory = Memory::of(subject).ok();
        let is_short = stop.is_wished() && used.seconds < SECONDS_MIN;
        if stop.is_wished() {
            self.workers.tell(self.groups, &Instruction::Stop);
        }
        let made = self.await_made(&mut run)?;
        self.next = made.end;
        for at in 0..self.groups {
            self.workers
                .tell(at, &Instruction::Expect { end: made.end });
        }
        let mut deadline = Instant::now() + PATIENCE;
        while run.found.len() < self.groups {
            match run.take_one(&self.workers, deadline)? {
                true => deadline = Instant::now() + PATIENCE,
                false => return Err("a process of subscribers did not finish".to_owned()),
            }
        }
        self.broken.clone_from(&made.broken);
        run.found.push(made.gate.clone());
        self.gone |= run.found.iter().any(|found| found.gone > 0);
        let mut round = judge(self.clients, &made, &run.found, &used, memory);
        if is_short {
            // Events between the end and its detection have too much weight then.
            round.fault = Some(INTERRUPTED.to_owned());
        }
        Ok(round)
    }

    fn await_made(&self, run: &mut Run<'_>) -> Result<Published, String> {
        // It gives up a little after its schedule ends, or seconds after the last answer.
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(made) = run.made.take() {
                return Ok(made);
            }
            if !run.take_one(&self.workers, deadline)? {
                return Err("the publisher did not finish".to_owned());
            }
        }
    }

    /// Lets all leave in order, and waits for it. After a failure no answer may come.
    pub(super) fn close(mut self) {
        if self.broken.is_some() || self.faulty {
            return;
        }
        let mut left = 0;
        for at in 0..=self.groups {
            self.workers.finish(at);
        }
        let deadline = Instant::now() + PATIENCE;
        while left <= self.groups {
            match self.workers.next(deadline) {
                Ok(Some((_, report))) => left += usize::from(report == DriverReport::Left),
                Err(_) => left += 1,
                Ok(None) => break,
            }
        }
    }
}

/// The workers' reports since the start signal.
struct Run<'a> {
    watcher: &'a mut dyn Watcher,
    workers: usize,
    seconds: BTreeMap<u64, (usize, Second)>,
    made: Option<Published>,
    found: Vec<Found>,
}

impl Run<'_> {
    /// Handles reports until a moment, a stop request, or the end.
    fn listen(
        &mut self,
        workers: &Workers<DriverReport>,
        until: Instant,
        stop: &Stop,
    ) -> Result<(), String> {
        let broken = |run: &Self| {
            let made = run.made.as_ref();
            made.is_some_and(|made| made.broken.is_some())
        };
        while !stop.is_wished() && !broken(self) && Instant::now() < until {
            self.take_one(workers, until.min(Instant::now() + STOP_AFTER))?;
        }
        Ok(())
    }

    /// Handles one report; false if none arrived in time.
    fn take_one(
        &mut self,
        workers: &Workers<DriverReport>,
        deadline: Instant,
    ) -> Result<bool, String> {
        match workers.next(deadline)? {
            None => return Ok(false),
            Some((
                _,
                DriverReport::Tick {
                    second,
                    sent,
                    since,
                },
            )) => self.count_tick(second, sent, since),
            Some((_, DriverReport::Published(made))) => self.made = Some(made),
            Some((_, DriverReport::Found(found))) => self.found.push(found),
            // A publisher whose server has closed: it has reported the reason.
            Some((_, DriverReport::Left)) => {}
            Some((_, other)) => return Err(format!("{other:?} from a worker that was at work")),
        }
        Ok(true)
    }

    /// A second is over when it is over for all of them.
    fn count_tick(&mut self, second: u64, sent: u64, since: Since) {
        let (told, sum) = self.seconds.entry(second).or_default();
        *told += 1;
        sum.sent += sent;
        sum.since.add(since);
        if *told == self.workers
            && let Some((_, sum)) = self.seconds.remove(&second)
        {
            self.watcher.second(sum);
        }
    }
}

fn instant_at(at_ns: u64) -> Instant {
    Instant::now() + Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()))
}

/// Divides clients among processes, each of which gets at least one.
fn shares(clients: usize, processes: usize) -> Vec<usize> {
    let processes = processes.clamp(1, clients.max(1));
    let (share, rest) = (clients / processes, clients % processes);
    (0..processes)
        .map(|at| share + usize::from(at < rest))
        .filter(|share| *share > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_dealt_out() {
        #[track_caller]
        fn check(clients: usize, processes: usize, expected: &[usize]) {
            assert_eq!(shares(clients, processes), expected);
        }
        check(10, 1, &[10]);
        check(10, 3, &[4, 3, 3]);
        check(2, 3, &[1, 1]);
        check(0, 2, &[]);
    }

    #[test]
    fn slow_rates_have_ten_batches() {
        #[track_caller]
        fn check(rate: Rate, seconds: f64, batches_min: u64, expected: (u64, u64, f64)) {
            let load = Load {
                batch: 3,
                rate,
                seconds,
                warm_up_seconds: 0.3,
                batches_min,
            };
            let schedule = load.schedule(1_000, 1);
            let (batches, warm_up) = match schedule.pace {
                Pace::Timed {
                    batches,
                    warm_up_batches,
                    ..
                } => (batches, warm_up_batches),
                Pace::Saturated { .. } => (0, 0),
            };
            let window = (schedule.window_end_ns - schedule.window_start_ns) as f64 / 1e9;
            assert_eq!((batches, warm_up, window), expected);
        }
        check(Rate::Hz(0.2), 2.0, 10, (11, 1, 50.0));
        check(Rate::Hz(20.0), 2.0, 10, (46, 6, 2.0));
        check(Rate::Hz(0.2), 2.0, 0, (2, 1, 5.0));
        check(Rate::Saturated { outstanding: 8 }, 2.0, 0, (0, 0, 2.0));
    }
}
