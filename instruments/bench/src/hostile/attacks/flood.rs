//! Expensive requests without a login, repeated: a large page, connections, password checks.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use crosstie_amqp::method::{BasicQos, QueueDeclare};

use super::own_name;
use crate::hostile::amqp::{AmqpPeer, method};
use crate::hostile::pages;
use crate::hostile::strike::Strike;
use crate::process::WorkerError;
use crate::subject::Endpoint;
use crate::wamp::pipe::Pipe;

const QUEUES: usize = 100_000;
/// The share of all queues that is left to others.
const QUEUES_LEFT: usize = 100;
/// Queues of one connection.
const OF_AN_OWNER: usize = 9_000;
const GETTERS: usize = 16;
const FLOODED: Duration = Duration::from_secs(8);

const CONNECTIONS: usize = 2_000;
const HELD: Duration = Duration::from_secs(5);

const GUESSERS: usize = 8;
const GUESSED: Duration = Duration::from_secs(5);

/// `/metrics` of many queues, on many connections at once.
pub(in crate::hostile) fn metrics(strike: &mut Strike) -> Result<(), WorkerError> {
    let pages = strike.pages()?.clone();
    let _owners = match strike.order.ways.broker {
        Some(_) => declare_many(strike)?,
        None => Vec::new(),
    };
    let end = (Instant::now() + FLOODED).min(strike.deadline);
    let counts = at_once(GETTERS, || {
        let (mut got, mut refused) = (0, 0);
        while Instant::now() < end {
            let patience = end.saturating_duration_since(Instant::now());
            match pages::read(&pages, "/metrics", patience.max(Duration::from_millis(10))) {
                Ok(_) => got += 1,
                Err(_) => {
                    refused += 1;
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
        (got, refused)
    });
    for (got, refused) in counts {
        strike.made("pages", got);
        strike.made("pages not got", refused);
    }
    Ok(())
}

/// Connections until no more are accepted.
pub(in crate::hostile) fn descriptors(strike: &mut Strike) -> Result<(), WorkerError> {
    let target = strike.order.ways.any_wamp().cloned();
    let target = target.ok_or_else(|| WorkerError::handshake("no WAMP router is known"))?;
    let mut sessions = Vec::new();
    // Without a scale: the limit of one process has to be reached.
    while sessions.len() < CONNECTIONS && !strike.is_over() {
        let session = match target.endpoint {
            Endpoint::Tcp(SocketAddr::V6(_)) => Pipe::connect(&target),
            _ => Pipe::connect_idle(&target, source(&target.endpoint)),
        };
        let session = session.and_then(|mut session| {
            session.join(&target.realm)?;
            Ok(session)
        });
        match session {
            Ok(session) => sessions.push(session),
            Err(error) => {
                strike.refused(&error.to_string());
                break;
            }
        }
    }
    strike.made("sessions", sessions.len() as u64);
    thread::sleep(HELD.min(strike.left()));
    Ok(())
}

/// Wrong passwords of an existing user.
pub(in crate::hostile) fn passwords(strike: &mut Strike) -> Result<(), WorkerError> {
    let mut broker = strike.broker()?.clone();
    broker.password += "x";
    let source = source(&broker.endpoint);
    let end = (Instant::now() + GUESSED).min(strike.deadline);
    let counts = at_once(GUESSERS, || {
        let (mut guesses, mut others) = (0, 0);
        while Instant::now() < end {
            match AmqpPeer::open_from(source, &broker, 1, end) {
                Err(WorkerError::TimedOut) => break,
                Err(WorkerError::Dismissed(_) | WorkerError::Closed(_)) => guesses += 1,
                Ok(_) | Err(_) => others += 1,
            }
        }
        (guesses, others)
    });
    for (guesses, others) in counts {
        strike.made("guesses", guesses);
        if others > 0 {
            strike.made("connections not let in", others);
        }
    }
    Ok(())
}

/// Another address than the witness's, if there is one: bounds per address shall affect the attacker alone.
fn source(endpoint: &Endpoint) -> Ipv4Addr {
    match endpoint {
        Endpoint::Tcp(SocketAddr::V4(address)) if address.ip().is_loopback() => {
            Ipv4Addr::new(127, 0, 0, 2)
        }
        _ => Ipv4Addr::UNSPECIFIED,
    }
}

/// The results of so many threads.
fn at_once(threads: usize, work: impl Fn() -> (u64, u64) + Sync) -> Vec<(u64, u64)> {
    thread::scope(|scope| {
        let working: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        working
            .into_iter()
            .flat_map(thread::ScopedJoinHandle::join)
            .collect()
    })
}

/// Queues that are deleted with their connections, each of which may have a share of all.
fn declare_many(strike: &mut Strike) -> Result<Vec<AmqpPeer>, WorkerError> {
    let mut owners = vec![strike.amqp(1)?];
    let queues = strike.size(QUEUES).min(QUEUES - QUEUES_LEFT);
    let name = own_name("many");
    for number in 0..queues {
        let queue = format!("{name}-{number}");
        let declare = QueueDeclare {
            queue: &queue,
            exclusive: true,
            no_wait: true,
            ..QueueDeclare::default()
        };
        if let Some(owner) = owners.last_mut() {
            method(1, &declare, &mut owner.output);
            if number % OF_AN_OWNER == OF_AN_OWNER - 1 {
                owner.ask(1, &BasicQos::default())?;
                owners.push(strike.amqp(1)?);
            }
        }
    }
    if let Some(owner) = owners.last_mut() {
        owner.ask(1, &BasicQos::default())?;
    }
    strike.made("queues", queues as u64);
    Ok(owners)
}
