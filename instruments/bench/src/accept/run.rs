//! One server and all its connections: opened, counted, held, echoed, and their costs for the server.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::client::{ClientReport, Echoed, Instruction, Settled};
use super::clients::Clients;
use super::subjects::Subject;
use super::{Hold, Plan};
use crate::error::BenchError;
use crate::figures::{Fault, Figures, Round};
use crate::load::{Latencies, Rtt, monotonic_ns};
use crate::machine::{CpuTime, Memory, kernel_memory};
use crate::process::STOP_AFTER;

#[derive(Clone, Debug, Default)]
struct Found {
    created: usize,
    established: usize,
    failed: usize,
    elapsed_ms: f64,
    connect_us: Rtt,
    /// `None` with `--no-echo`.
    echoed: Option<Echoed>,
    echo_ms: f64,
    /// Bytes per connection of the server's own memory, held and silent.
    server_bytes: Option<f64>,
    /// The same after every connection has carried something.
    server_bytes_after_echo: Option<f64>,
    /// The kernel's memory per connection, for both ends.
    kernel_bytes: f64,
    /// Whether the server's supposed processes used the processor.
    has_served: bool,
    server_cpu_us: Option<f64>,
    client_cpu_us: f64,
    /// Held connections that the server closed.
    lost: usize,
    faults: Vec<String>,
}

impl Found {
    fn per_s(&self) -> f64 {
        match self.elapsed_ms > 0.0 {
            true => self.established as f64 / (self.elapsed_ms / 1e3),
            false => 0.0,
        }
    }

    fn into_round(self) -> Round {
        let mut found = Figures::new()
            .with("created", self.created as f64)
            .with("established", self.established as f64)
            .with("failed", self.failed as f64)
            .with("lost", self.lost as f64)
            .with("elapsed_ms", self.elapsed_ms)
            .with("established_per_s", self.per_s())
            .with_object("connect_us", &self.connect_us)
            .with_known("server_bytes_per_connection", self.server_bytes)
            .with_known(
                "server_bytes_per_connection_after_echo",
                self.server_bytes_after_echo,
            )
            .with("kernel_bytes_per_connection", self.kernel_bytes)
            .with_known("server_cpu_us_per_connection", self.server_cpu_us)
            .with("client_cpu_us_per_connection", self.client_cpu_us);
        if let Some(echoed) = self.echoed {
            found = found
                .with("echoed.right", echoed.right as f64)
                .with("echoed.wrong", echoed.wrong as f64)
                .with("echoed.missing", echoed.missing as f64)
                .with("echo_ms", self.echo_ms);
        }
        let why = self.faults.join("; ");
        match why.is_empty() {
            true => Ok(found),
            false => Err(Fault::beside(why, found)),
        }
    }
}

/// How long it takes to free a connection's bytes, or to bind them to a process, after the last event.
const SETTLING: Duration = Duration::from_millis(300);

pub(super) fn run(
    plan: &Plan<'_>,
    subject: &Subject,
    sources: &[Ipv4Addr],
    hold: Option<Hold>,
    out: &mut impl Write,
) -> Result<Round, BenchError> {
    let clients = Clients::start(plan, subject, sources)?;
    let mut run = Run {
        plan,
        clients,
        found: Found::default(),
    };
    let before = Spent::now(subject, &run.clients);
    run.open(out)?;
    thread::sleep(SETTLING);
    let held = Spent::now(subject, &run.clients);
    run.note_costs(&before, &held);
    if !plan.options.no_echo && !run.stopped() {
        run.echo(out)?;
        thread::sleep(SETTLING);
        let echoed = Spent::now(subject, &run.clients);
        run.found.server_bytes_after_echo = run.memory_each(&before, &echoed);
    }
    if let Some(hold) = hold {
        run.hold(hold, out)?;
    }
    run.count_lost();
    Ok(run.found.into_round())
}

struct Run<'a> {
    plan: &'a Plan<'a>,
    clients: Clients,
    found: Found,
}

impl Run<'_> {
    fn open(&mut self, out: &mut impl Write) -> Result<(), BenchError> {
        let options = &self.plan.options;
        writeln!(out, "Creating {} connections", options.connections)?;
        out.flush()?;
        let begun_ns = monotonic_ns();
        let mut said = 0;
        while self.found.created < options.connections && !self.stopped() {
            if self.found.created > 0 {
                self.pause(options.delay);
            }
            let count = options.batch.min(options.connections - self.found.created);
            if let Err(why) = self.clients.open(count) {
                self.found.faults.push(why);
                break;
            }
            self.found.created += count;
            let thousand = self.found.created / 1_000;
            if thousand > said || self.found.created == options.connections {
                writeln!(out, "{} connections created", self.found.created)?;
                out.flush()?;
                said = thousand;
            }
        }
        match self.found.created < options.connections {
            true => writeln!(out, "Interrupted: no more connections")?,
            false => writeln!(out, "All connections in progress")?,
        }
        self.settle(begun_ns, out)
    }

    /// Waits until every connection is established or has failed.
    fn settle(&mut self, begun_ns: u64, out: &mut impl Write) -> Result<(), BenchError> {
        let options = &self.plan.options;
        let mut latencies = Latencies::default();
        let mut last_ns = begun_ns;
        let mut failures = Vec::new();
        for (at, settled) in self.clients.ask(Instruction::Settle, settled) {
            match settled {
                Ok(settled) => {
                    self.found.established += settled.established;
                    self.found.failed += settled.failed;
                    last_ns = last_ns.max(settled.last_ns);
                    latencies.add(&settled.latencies);
                    failures.extend(settled.failure);
                }
                Err(why) => self.found.faults.push(format!("client {}: {why}", at + 1)),
            }
        }
        failures.dedup();
        self.found.failed = self.found.created.saturating_sub(self.found.established);
        self.found.elapsed_ms = (last_ns - begun_ns) as f64 / 1e6;
        self.found.connect_us = latencies.summary();
        let which = match self.found.created < options.connections {
            true => "These",
            false => "All",
        };
        writeln!(
            out,
            "{which} connections complete in {:.0}ms",
            self.found.elapsed_ms
        )?;
        writeln!(
            out,
            "{} established. {} failed.",
            self.found.established, self.found.failed
        )?;
        if self.found.failed > 0 {
            let why = failures.first().cloned().unwrap_or_default();
            let failed = self.found.failed;
            self.found.faults.push(format!("{failed} failed: {why}"));
        }
        if self.found.created < options.connections {
            let text = format!("stopped after {} connections", self.found.created);
            self.found.faults.push(text);
        }
        Ok(())
    }

    fn echo(&mut self, out: &mut impl Write) -> Result<(), BenchError> {
        let begun = Instant::now();
        let mut sum = Echoed::default();
        for (at, echoed) in self.clients.ask(Instruction::Echo, echoed) {
            match echoed {
                Ok(echoed) => {
                    sum.right += echoed.right;
                    sum.wrong += echoed.wrong;
                }
                Err(why) => self.found.faults.push(format!("client {}: {why}", at + 1)),
            }
        }
        let Echoed { right, wrong, .. } = sum;
        sum.missing = self.found.established.saturating_sub(right + wrong);
        self.found.echo_ms = begun.elapsed().as_secs_f64() * 1e3;
        self.found.echoed = Some(sum);
        let missing = sum.missing;
        writeln!(
            out,
            "One byte on each: {right} echoed, {wrong} wrong, {missing} missing, in {:.0}ms",
            self.found.echo_ms
        )?;
        if wrong > 0 {
            let text = format!("{wrong} connections gave wrong answers: not an echo");
            self.found.faults.push(text);
        }
        if missing > 0 {
            self.found.faults.push(format!(
                "{missing} connections echoed nothing: the server has stopped answering, or has \
                 no descriptors left to accept them (see its limit in /proc/PID/limits)"
            ));
        }
        Ok(())
    }

    fn hold(&self, hold: Hold, out: &mut impl Write) -> Result<(), BenchError> {
        if self.stopped() {
            return Ok(());
        }
        match hold {
            Hold::For(length) => {
                writeln!(out, "Holding connections for {} s", length.as_secs_f64())?;
                out.flush()?;
                self.pause(length);
            }
            Hold::UntilReturn => {
                writeln!(out, "Press return to close connections")?;
                out.flush()?;
                let pressed = Arc::new(AtomicBool::new(false));
                let key = Arc::clone(&pressed);
                thread::spawn(move || {
                    // The end of the input counts as well: there is no terminal.
                    let _ = io::stdin().read_line(&mut String::new());
                    key.store(true, Ordering::Relaxed);
                });
                while !pressed.load(Ordering::Relaxed) && !self.stopped() {
                    thread::sleep(STOP_AFTER);
                }
            }
        }
        Ok(())
    }

    fn count_lost(&mut self) {
        let mut open = 0;
        for (_, held) in self.clients.ask(Instruction::Count, held) {
            open += held.unwrap_or(0);
        }
        // Connections with wrong answers have been closed here.
        let wrong = self
            .found
            .echoed
            .map_or(0, |echoed| echoed.wrong + echoed.missing);
        self.found.lost = self.found.established.saturating_sub(open + wrong);
        if self.found.lost > 0 {
            let text = format!("{} connections were closed by the server", self.found.lost);
            self.found.faults.push(text);
        }
    }

    fn note_costs(&mut self, before: &Spent, held: &Spent) {
        let established = self.found.established.max(1) as f64;
        self.found.kernel_bytes = (held.kernel as f64 - before.kernel as f64) / established;
        let server_ns = held.server.since(&before.server) as f64;
        // A process that did nothing is not the server.
        self.found.has_served = server_ns > 0.0;
        self.found.server_bytes = self.memory_each(before, held);
        self.found.server_cpu_us = (server_ns > 0.0).then(|| server_ns / 1e3 / established);
        self.found.client_cpu_us = held.clients.since(&before.clients) as f64 / 1e3 / established;
    }

    fn memory_each(&self, before: &Spent, after: &Spent) -> Option<f64> {
        let (before, after) = (before.memory?, after.memory?);
        if !self.found.has_served {
            return None;
        }
        let established = self.found.established.max(1) as f64;
        Some((after.pss as f64 - before.pss as f64) / established)
    }

    fn pause(&self, length: Duration) {
        let end = Instant::now() + length;
        while !self.stopped() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(STOP_AFTER));
        }
    }

    fn stopped(&self) -> bool {
        self.plan.site.stop.is_wished()
    }
}

/// The usage of server and clients at one moment.
struct Spent {
    /// `None` if the server's processes are unknown, or another user's.
    memory: Option<Memory>,
    kernel: u64,
    server: CpuTime,
    clients: CpuTime,
}

impl Spent {
    fn now(subject: &Subject, clients: &Clients) -> Self {
        let processes = &subject.processes;
        Self {
            memory: Memory::of(processes).ok().filter(|_| !processes.is_empty()),
            kernel: kernel_memory(),
            server: CpuTime::of(processes),
            clients: CpuTime::of(&clients.processes()),
        }
    }
}

fn settled(report: ClientReport) -> Option<Settled> {
    match report {
        ClientReport::Settled(settled) => Some(settled),
        _ => None,
    }
}

fn echoed(report: ClientReport) -> Option<Echoed> {
    match report {
        ClientReport::Echoed(echoed) => Some(echoed),
        _ => None,
    }
}

fn held(report: ClientReport) -> Option<usize> {
    match report {
        ClientReport::Held { open } => Some(open),
        _ => None,
    }
}
