//! A process with many subscribers: one thread, one epoll, one buffer.

use std::io;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::instruction_reader::{Heard, InstructionReader};
use super::ledger::{Ledger, Subscriber};
use super::relay::Part;
use super::server::Server;
use super::session::{Buffer, Received, Session};
use super::worker::{DriverReport, Instruction, Ticks};
use crate::load::monotonic_ns;
use crate::process::{WorkerError, say};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SubscribersOrder {
    /// The subscribers' servers, in turn.
    pub(super) servers: Vec<Server>,
    pub(super) payload_bytes: usize,
    pub(super) clients: usize,
    /// The source addresses of their TCP connections, in turn.
    pub(super) sources: Vec<Ipv4Addr>,
    /// From one connection to the next.
    pub(super) ramp_ns: u64,
}

/// After so long without an event, missing ones count as lost.
const QUIET: Duration = Duration::from_secs(3);

/// The interval of progress reports about connections.
const PROGRESS: Duration = Duration::from_millis(100);

const STANDARD_INPUT: u64 = u64::MAX;

pub(super) fn work(order: &SubscribersOrder) -> Result<(), WorkerError> {
    let mut subscribers = Subscribers::gather(order)?;
    say(&DriverReport::Ready);
    while subscribers.turn()? {}
    subscribers.leave();
    say(&DriverReport::Left);
    Ok(())
}

struct Subscribers {
    epoll: rustix::fd::OwnedFd,
    instructions: InstructionReader,
    buffer: Buffer,
    ledger: Ledger,
    /// A closed one leaves its place empty: epoll identifies the others by their places.
    subscribers: Vec<Option<Subscriber>>,
    open: usize,
    run: Option<Run>,
    ready: Vec<epoll::Event>,
}

struct Run {
    first: u64,
    ticks: Ticks,
    /// The number after the last publication, once it is known.
    end: Option<u64>,
    heard_last: Instant,
    /// Subscribers at its beginning.
    began_with: usize,
    /// The progress of each subscriber that was closed; its missing events can be counted only at the end.
    gone_at: Vec<u64>,
}

impl Subscribers {
    fn gather(order: &SubscribersOrder) -> Result<Self, WorkerError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let instructions = InstructionReader::default();
        add(&epoll, &instructions, STANDARD_INPUT)?;
        let mut subscribers = Self {
            epoll,
            instructions,
            buffer: Buffer::default(),
            ledger: Ledger::new(&order.servers[0], order.payload_bytes)?,
            subscribers: Vec::with_capacity(order.clients),
            open: 0,
            run: None,
            ready: Vec::with_capacity(1024),
        };
        let (begun, mut told) = (Instant::now(), Instant::now());
        for at in 0..order.clients {
            // Existing connections must answer pings while others are opened slowly.
            let due = begun + Duration::from_nanos(order.ramp_ns * at as u64);
            while Instant::now() < due {
                subscribers.wait(due.saturating_duration_since(Instant::now()))?;
                if !subscribers.handle_ready()? {
                    return Ok(subscribers);
                }
            }
            let source = order.sources[at % order.sources.len()];
            let server = &order.servers[at % order.servers.len()];
            let session = Session::open(server, Part::Subscriber, source)
                .map_err(|error| with_count(error, at, order.clients))?;
            add(&subscribers.epoll, &session, at as u64)?;
            subscribers
                .subscribers
                .push(Some(Subscriber::new(session, 0)));
            subscribers.open += 1;
            if told.elapsed() > PROGRESS {
                told = Instant::now();
                say(&DriverReport::Subscribed { sessions: at + 1 });
            }
        }
        Ok(subscribers)
    }

    /// One wait and its events; false when the bench has ended its instructions.
    fn turn(&mut self) -> Result<bool, WorkerError> {
        let patience = match &self.run {
            None => Duration::from_secs(3600),
            Some(run) => {
                let tick = Duration::from_nanos(run.ticks.due_ns().saturating_sub(monotonic_ns()));
                match run.end {
                    Some(_) => tick.min(QUIET.saturating_sub(run.heard_last.elapsed())),
                    None => tick,
                }
            }
        };
        self.wait(patience)?;
        if !self.handle_ready()? {
            return Ok(false);
        }
        self.tick();
        self.finish_if_done();
        Ok(true)
    }

    fn wait(&mut self, patience: Duration) -> Result<(), WorkerError> {
        self.ready.clear();
        // Waits have whole milliseconds here, which is enough for a line each second.
        let patience = match self.instructions.has_more() {
            true => Duration::ZERO,
            false => patience,
        };
        let timeout = Timespec::try_from(patience).unwrap_or_default();
        let space = rustix::buffer::spare_capacity(&mut self.ready);
        match epoll::wait(&self.epoll, space, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    fn handle_ready(&mut self) -> Result<bool, WorkerError> {
        let mut heard = self.instructions.has_more();
        let mut came = false;
        for at in 0..self.ready.len() {
            let data = self.ready[at].data.u64();
            if data == STANDARD_INPUT {
                heard = true;
                continue;
            }
            came |= self.read(data as usize)?;
        }
        if let (true, Some(run)) = (came, &mut self.run) {
            run.heard_last = Instant::now();
        }
        if heard {
            match self.instructions.hear()? {
                Heard::End => return Ok(false),
                Heard::Nothing => {}
                Heard::Instruction(instruction) => self.follow(instruction),
            }
        }
        Ok(true)
    }

    /// Reads once from one of them; returns whether anything arrived.
    fn read(&mut self, at: usize) -> Result<bool, WorkerError> {
        let Some(place) = self.subscribers.get_mut(at) else {
            return Ok(false);
        };
        let Some(subscriber) = place else {
            return Ok(false);
        };
        let received = self.ledger.receive(subscriber, &mut self.buffer, |_, _| {});
        let received = match received {
            Ok(received) => received,
            // One session's fault ends that session, not the others.
            Err(error) => {
                self.ledger
                    .farewell
                    .get_or_insert_with(|| error.to_string());
                Received::End
            }
        };
        if received == Received::End {
            if let Some(run) = &mut self.run {
                run.gone_at.push(subscriber.next());
            }
            *place = None;
            self.open -= 1;
        }
        Ok(received != Received::Nothing)
    }

    fn follow(&mut self, instruction: Instruction) {
        match instruction {
            Instruction::Go(schedule) => {
                self.ledger.begin(schedule);
                for subscriber in self.subscribers.iter_mut().flatten() {
                    subscriber.begin(schedule.first);
                }
                self.run = Some(Run {
                    first: schedule.first,
                    ticks: Ticks::new(schedule.start_ns),
                    end: None,
                    heard_last: Instant::now(),
                    began_with: self.open,
                    gone_at: Vec::new(),
                });
            }
            Instruction::Expect { end } => {
                if let Some(run) = &mut self.run {
                    run.end = Some(end);
                    run.heard_last = Instant::now();
                }
            }
            Instruction::Stop => {}
        }
    }

    fn tick(&mut self) {
        if let Some(run) = &mut self.run
            && let Some(second) = run.ticks.over(monotonic_ns())
        {
            say(&DriverReport::Tick {
                second,
                sent: 0,
                since: std::mem::take(&mut self.ledger.since_tick),
            });
        }
    }

    fn finish_if_done(&mut self) {
        let Some(run) = &self.run else { return };
        let Some(end) = run.end else { return };
        // As many as were published is at least enough to look closer.
        let wanted = (end - run.first) * run.began_with as u64;
        let complete = self.ledger.events >= wanted
            || self
                .subscribers
                .iter()
                .flatten()
                .all(|subscriber| subscriber.lost(end) == 0);
        if !complete && run.heard_last.elapsed() < QUIET {
            return;
        }
        let lost_with_the_gone = run
            .gone_at
            .iter()
            .map(|next| end.saturating_sub(*next))
            .sum();
        let gone = self.subscribers.len() - self.open;
        let found = self.ledger.found(
            self.subscribers.iter().flatten(),
            gone,
            lost_with_the_gone,
            end,
        );
        self.run = None;
        say(&DriverReport::Found(found));
    }

    /// After one GOODBYE without an answer, thousands more are not sent.
    fn leave(self) {
        for subscriber in self.subscribers.into_iter().flatten() {
            if subscriber.session.leave().is_err() {
                break;
            }
        }
    }
}

fn add(
    epoll: &rustix::fd::OwnedFd,
    source: &impl std::os::fd::AsFd,
    data: u64,
) -> Result<(), WorkerError> {
    epoll::add(epoll, source, EventData::new_u64(data), EventFlags::IN).map_err(io::Error::from)?;
    Ok(())
}

/// Adds the number of connections, which often explains the reason.
fn with_count(error: WorkerError, connected: usize, clients: usize) -> WorkerError {
    let open_files = match &error {
        WorkerError::Connect(_, error) | WorkerError::Io(error) => {
            error.raw_os_error() == Some(Errno::MFILE.raw_os_error())
        }
        _ => false,
    };
    let advice = match open_files {
        true => "; raise the limit of open files (ulimit -n)",
        false => "",
    };
    WorkerError::Io(io::Error::other(format!(
        "subscriber {} of {clients}: {error}{advice}",
        connected + 1
    )))
}
