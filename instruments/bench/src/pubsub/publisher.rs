//! The publisher's process: publishes when due, and catches up if it or the server falls behind. Saturated, it keeps a
//! number of publications in flight; a subscriber of its own (the last to subscribe) shows which have been delivered.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;
use serde::{Deserialize, Serialize};

use super::instruction_reader::{Heard, InstructionReader};
use super::ledger::{Found, Ledger, Since, Subscriber};
use super::relay::Part;
use super::schedule::{Pace, Schedule};
use super::server::{Arrival, Reader, Server, Writer};
use super::session::{Buffer, Received, Session};
use super::worker::{DriverReport, Instruction, Ticks};
use crate::load::{Latencies, Recorded, monotonic_ns};
use crate::process::{WorkerError, say};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PublisherOrder {
    pub(super) server: Server,
    pub(super) payload_bytes: usize,
    pub(super) acknowledge: bool,
    pub(super) source: Ipv4Addr,
    /// Whether it has a subscriber of its own, for saturated runs.
    pub(super) gate: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Published {
    /// The number after the last publication.
    pub end: u64,
    pub published: u64,
    /// Due publications that were not made: the server took too few for too long.
    pub unpublished: u64,
    /// Publications whose requested acknowledgement did not arrive.
    pub unacknowledged: u64,
    /// From the due times to the writes.
    pub late: Recorded,
    /// The results of its own subscriber.
    pub gate: Found,
    /// The reason of an early end: the server has closed, or takes nothing.
    pub broken: Option<String>,
}

/// A publisher this late will not catch up.
const LATE_NS_MAX: u64 = 2_000_000_000;

/// How long to wait for acknowledgements, and for the last events.
const QUIET_NS: u64 = 3_000_000_000;

/// While it is behind it checks for input only after so many batches.
const LOOK_EVERY: u64 = 16;

pub(super) fn work(order: &PublisherOrder) -> Result<(), WorkerError> {
    // A timer may otherwise be 50 µs late to save power; that would be in every latency.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let mut publisher = Publisher::join(order)?;
    say(&DriverReport::Ready);
    while let Some(schedule) = publisher.await_go()? {
        let made = publisher.run(schedule);
        let broken = made.broken.is_some();
        say(&DriverReport::Published(made));
        if broken {
            // The results are reported; the connection is gone.
            say(&DriverReport::Left);
            return Ok(());
        }
    }
    publisher.leave();
    say(&DriverReport::Left);
    Ok(())
}

struct Publisher {
    session: Session,
    writer: Writer,
    reader: Reader,
    gate: Option<(Subscriber, Ledger)>,
    acknowledge: bool,
    acknowledged: u64,
    instructions: InstructionReader,
    buffer: Buffer,
    output: Vec<u8>,
    /// The bench requests the end of this run, or of everything.
    stopped: bool,
    ended: bool,
    run: Run,
}

#[derive(Default)]
struct Run {
    next: u64,
    late: Latencies,
    sent_since_tick: u64,
    ticks: Option<Ticks>,
    schedule: Option<Schedule>,
    /// When each publication in flight was written, the oldest first.
    under_way: VecDeque<u64>,
}

impl Publisher {
    fn join(order: &PublisherOrder) -> Result<Self, WorkerError> {
        let session = Session::open(&order.server, Part::Publisher, order.source)?;
        let gate = match order.gate {
            false => None,
            true => Some((
                Subscriber::new(
                    Session::open(&order.server, Part::Subscriber, order.source)?,
                    0,
                ),
                Ledger::new(&order.server, order.payload_bytes)?,
            )),
        };
        Ok(Self {
            session,
            writer: Writer::new(&order.server, order.payload_bytes, order.acknowledge)?,
            reader: Reader::new(&order.server, order.payload_bytes)?,
            gate,
            acknowledge: order.acknowledge,
            acknowledged: 0,
            instructions: InstructionReader::default(),
            buffer: Buffer::default(),
            output: Vec::new(),
            stopped: false,
            ended: false,
            run: Run::default(),
        })
    }

    /// The next run; `None` when there will be none. Answers pings meanwhile.
    fn await_go(&mut self) -> Result<Option<Schedule>, WorkerError> {
        loop {
            if self.ended {
                return Ok(None);
            }
            if let Some(Instruction::Go(schedule)) = self.look(None)? {
                return Ok(Some(schedule));
            }
        }
    }

    fn run(&mut self, schedule: Schedule) -> Published {
        self.stopped = false;
        self.acknowledged = 0;
        self.run = Run {
            next: schedule.first,
            ticks: Some(Ticks::new(schedule.start_ns)),
            schedule: Some(schedule),
            ..Run::default()
        };
        if let Some((subscriber, ledger)) = &mut self.gate {
            subscriber.begin(schedule.first);
            ledger.begin(schedule);
        }
        let outcome = self.publish_all(&schedule);
        let end = self.run.next;
        let published = end - schedule.first;
        let gate = match &mut self.gate {
            Some((subscriber, ledger)) => ledger.found([&*subscriber].into_iter(), 0, 0, end),
            None => Found::default(),
        };
        Published {
            end,
            published,
            unpublished: *outcome.as_ref().unwrap_or(&0),
            unacknowledged: match self.acknowledge {
                true => published.saturating_sub(self.acknowledged),
                false => 0,
            },
            late: self.run.late.recorded(),
            gate,
            broken: outcome.err().map(|error| error.to_string()),
        }
    }

    /// Publishes, and waits for the answers; returns how many publications could not be made.
    fn publish_all(&mut self, schedule: &Schedule) -> Result<u64, WorkerError> {
        let unpublished = match schedule.pace {
            Pace::Timed { batch, batches, .. } => self.keep_time(schedule, batch, batches)?,
            Pace::Saturated { outstanding } => {
                self.saturate(schedule, outstanding)?;
                0
            }
        };
        let end = self.run.next;
        let published = end - schedule.first;
        let deadline_ns = monotonic_ns() + QUIET_NS;
        while !self.is_settled(published, end) && monotonic_ns() < deadline_ns && !self.ended {
            self.look_until(deadline_ns)?;
        }
        Ok(unpublished)
    }

    fn is_settled(&self, published: u64, end: u64) -> bool {
        let acknowledged = !self.acknowledge || self.acknowledged >= published;
        acknowledged
            && self
                .gate
                .as_ref()
                .is_none_or(|(subscriber, _)| subscriber.lost(end) == 0)
    }

    /// Publishes when due; returns how many publications could not be made.
    fn keep_time(
        &mut self,
        schedule: &Schedule,
        batch: u64,
        batches: u64,
    ) -> Result<u64, WorkerError> {
        for at in 0..batches {
            let due_ns = schedule.batch_due_ns(at);
            let mut now_ns = monotonic_ns();
            if now_ns < due_ns || at % LOOK_EVERY == 0 {
                self.wait_until(due_ns)?;
                now_ns = monotonic_ns();
            }
            let late_ns = now_ns.saturating_sub(due_ns);
            if self.stopped {
                // The run was ended early: no publication has failed.
                return Ok(0);
            }
            if late_ns > LATE_NS_MAX {
                return Ok((batches - at) * batch);
            }
            self.run.late.record(late_ns);
            self.publish(batch)?;
        }
        Ok(0)
    }

    /// Keeps publications in flight until the window ends.
    fn saturate(&mut self, schedule: &Schedule, outstanding: u64) -> Result<(), WorkerError> {
        self.wait_until(schedule.start_ns)?;
        while monotonic_ns() < schedule.window_end_ns && !self.stopped {
            let room = outstanding.saturating_sub(self.run.under_way.len() as u64);
            if room > 0 {
                let now_ns = monotonic_ns();
                self.run.under_way.extend((0..room).map(|_| now_ns));
                self.publish(room)?;
            }
            let before = self.run.under_way.len();
            let quiet_ns = monotonic_ns() + QUIET_NS;
            while self.run.under_way.len() == before && !self.stopped {
                if monotonic_ns() > quiet_ns {
                    return Err(WorkerError::TimedOut);
                }
                self.look_until(quiet_ns)?;
            }
        }
        Ok(())
    }

    /// A batch, in one write.
    fn publish(&mut self, count: u64) -> Result<(), WorkerError> {
        self.output.clear();
        for _ in 0..count {
            self.writer.push(self.run.next, &mut self.output)?;
            self.run.next += 1;
        }
        self.run.sent_since_tick += count;
        self.session.write_all(&self.output)
    }

    /// Waits for a moment, and handles all events until then.
    fn wait_until(&mut self, due_ns: u64) -> Result<(), WorkerError> {
        loop {
            self.look_until(due_ns)?;
            if self.stopped || monotonic_ns() >= due_ns {
                return Ok(());
            }
        }
    }

    /// Waits for an event, and for a moment at most.
    fn look_until(&mut self, due_ns: u64) -> Result<(), WorkerError> {
        let tick_ns = self.run.ticks.as_ref().map_or(u64::MAX, Ticks::due_ns);
        let patience_ns = due_ns.min(tick_ns).saturating_sub(monotonic_ns());
        let _ = self.look(Some(Duration::from_nanos(patience_ns)))?;
        self.tick();
        Ok(())
    }

    /// Waits once and handles the events; returns an instruction to start.
    fn look(&mut self, patience: Option<Duration>) -> Result<Option<Instruction>, WorkerError> {
        let mut ready = [PollFlags::empty(); 3];
        {
            let mut sources = vec![
                PollFd::new(&self.instructions, PollFlags::IN),
                PollFd::new(&self.session, PollFlags::IN),
            ];
            if let Some((gate, _)) = &self.gate {
                sources.push(PollFd::new(&gate.session, PollFlags::IN));
            }
            let patience = match self.instructions.has_more() {
                true => Some(Duration::ZERO),
                false => patience,
            };
            let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
            match poll(&mut sources, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
            for (ready, source) in ready.iter_mut().zip(&sources) {
                *ready = source.revents();
            }
        }
        let [instructions, session, gate] = ready.map(|flags| !flags.is_empty());
        if session {
            self.read_own()?;
        }
        if gate {
            self.read_gate()?;
        }
        if instructions || self.instructions.has_more() {
            return self.listen();
        }
        Ok(None)
    }

    fn listen(&mut self) -> Result<Option<Instruction>, WorkerError> {
        match self.instructions.hear()? {
            Heard::Nothing | Heard::Instruction(Instruction::Expect { .. }) => Ok(None),
            Heard::Instruction(Instruction::Stop) => {
                self.stopped = true;
                Ok(None)
            }
            Heard::Instruction(go) => Ok(Some(go)),
            Heard::End => {
                (self.stopped, self.ended) = (true, true);
                Ok(None)
            }
        }
    }

    fn read_own(&mut self) -> Result<(), WorkerError> {
        let (reader, acknowledged) = (&mut self.reader, &mut self.acknowledged);
        let mut farewell = None;
        let received = self.session.receive(&mut self.buffer, |_, message| {
            match reader.read(message, 0)? {
                Arrival::Published => *acknowledged += 1,
                Arrival::Farewell(text) => farewell = Some(text),
                _ => {}
            }
            Ok(())
        })?;
        match (farewell, received) {
            (Some(text), _) => Err(WorkerError::Refused(format!("the publisher: {text}"))),
            (None, Received::End) => Err(WorkerError::Closed("taking publications")),
            _ => Ok(()),
        }
    }

    fn read_gate(&mut self) -> Result<(), WorkerError> {
        let Some((subscriber, ledger)) = &mut self.gate else {
            return Ok(());
        };
        let (under_way, schedule) = (&mut self.run.under_way, self.run.schedule);
        let mut times = Vec::new();
        let received = ledger.receive(subscriber, &mut self.buffer, |_, now_ns| {
            // The cold start and the end are not measured.
            if let Some(sent_ns) = under_way.pop_front()
                && schedule.is_some_and(|schedule| schedule.in_window(now_ns))
            {
                times.push(now_ns.saturating_sub(sent_ns));
            }
        })?;
        for nanoseconds in times {
            ledger.time(nanoseconds);
        }
        match received {
            Received::End => Err(WorkerError::Closed("sending events")),
            _ => Ok(()),
        }
    }

    fn tick(&mut self) {
        let Some(ticks) = &mut self.run.ticks else {
            return;
        };
        if let Some(second) = ticks.over(monotonic_ns()) {
            let since = match &mut self.gate {
                Some((_, ledger)) => std::mem::take(&mut ledger.since_tick),
                None => Since::default(),
            };
            let sent = std::mem::take(&mut self.run.sent_since_tick);
            say(&DriverReport::Tick {
                second,
                sent,
                since,
            });
        }
    }

    fn leave(self) {
        if self.session.leave().is_ok()
            && let Some((gate, _)) = self.gate
        {
            // The router has answered one GOODBYE, which is enough.
            let _ = gate.session.leave();
        }
    }
}
