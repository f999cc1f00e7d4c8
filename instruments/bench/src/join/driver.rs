//! Clients that join and leave, clients that guess, and one that receives join events: a process for each kind.

use std::thread;
use std::time::{Duration, Instant};

use crosstie_client::Authenticator;
use crosstie_wamp::Message;
use serde::{Deserialize, Serialize};

use super::credentials::Method;
use crate::load::{Found, Latencies, Recorded, in_windows, of_all};
use crate::machine::accounting::own_cpu_ns;
use crate::process::{Driver, WorkerError, instruction, say};
use crate::subject::Target;
use crate::wamp::login::Joined;
use crate::wamp::pipe::Pipe;

pub(crate) const ROLE: &str = "join";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) target: Target,
    pub(crate) task: Task,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    Join { method: Method, clients: usize },
    Guess { clients: usize },
    JoinHashed { clients: usize },
    Observe,
}

pub(crate) fn work(order: Order) -> Result<(), WorkerError> {
    let Order { target, task } = order;
    match task {
        Task::Observe => observe(&target),
        Task::Join { method, clients } => in_windows(|_, end| {
            all(clients, |times| {
                join(&target, &*method.authenticator(), end, times)
            })
        }),
        Task::JoinHashed { clients } => in_windows(|_, end| {
            all(clients, |times| {
                join(&target, &*Method::hashed(), end, times)
            })
        }),
        Task::Guess { clients } => {
            in_windows(|_, end| all(clients, |times| guess(&target, end, times)))
        }
    }
}

/// Runs that many clients, a thread for each.
fn all(
    clients: usize,
    client: impl Fn(&mut Latencies) -> Result<(), WorkerError> + Sync,
) -> Result<Latencies, WorkerError> {
    let client = &client;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|_| {
                scope.spawn(move || {
                    let mut times = Latencies::default();
                    client(&mut times).map(|()| times)
                })
            })
            .collect();
        of_all(threads)
    })
}

fn join(
    target: &Target,
    authenticator: &dyn Authenticator,
    end: Instant,
    times: &mut Latencies,
) -> Result<(), WorkerError> {
    while Instant::now() < end {
        let mut joined = attempt(target, authenticator, times)?;
        if let Joined::Refused(reason) = &joined.1 {
            return Err(WorkerError::Refused(format!("a session: {reason}")));
        }
        joined.0.leave()?;
    }
    Ok(())
}

fn guess(target: &Target, end: Instant, times: &mut Latencies) -> Result<(), WorkerError> {
    let authenticator = Method::guess();
    while Instant::now() < end {
        if let (_, Joined::Welcome(_)) = attempt(target, &*authenticator, times)? {
            return Err(WorkerError::Handshake(
                "a wrong ticket was taken".to_owned(),
            ));
        }
    }
    Ok(())
}

fn attempt(
    target: &Target,
    authenticator: &dyn Authenticator,
    times: &mut Latencies,
) -> Result<(Pipe, Joined), WorkerError> {
    let begun = Instant::now();
    let mut pipe = Pipe::connect_briefly(target)?;
    let joined = pipe.log_in(&target.realm, authenticator)?;
    times.record(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    Ok((pipe, joined))
}

/// Counts the events of each window by their arrival.
fn observe(target: &Target) -> Result<(), WorkerError> {
    let mut pipe = Pipe::connect(target)?;
    let authenticator = Method::Ticket.authenticator();
    if let Joined::Refused(reason) = pipe.log_in(&target.realm, &*authenticator)? {
        return Err(WorkerError::Refused(format!("the observer: {reason}")));
    }
    pipe.subscribe("wamp.session.on_join")?;
    say(&Driver::<Found>::Ready);
    while let Some(seconds) = instruction::<f64>()? {
        let (begun, cpu_ns) = (Instant::now(), own_cpu_ns());
        let end = begun + Duration::from_secs_f64(seconds);
        let mut count = 0;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            pipe.limit_waiting(left.max(Duration::from_millis(1)))?;
            let received = pipe.receive(|message, _| {
                count += u64::from(matches!(message, Message::Event { .. }));
                Ok(())
            });
            match received {
                Ok(true) | Err(WorkerError::TimedOut) => {}
                Ok(false) => return Err(WorkerError::Closed("publishing joins")),
                Err(error) => return Err(error),
            }
        }
        say(&Driver::Found(Found {
            count,
            seconds: begun.elapsed().as_secs_f64(),
            times: Recorded::default(),
            cpu_ns: own_cpu_ns() - cpu_ns,
        }));
    }
    Ok(())
}
