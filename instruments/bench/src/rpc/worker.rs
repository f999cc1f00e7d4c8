//! The processes of `bench rpc` and `bench fabric`: callers, callees, and the relay and ends of the floors.

use std::io::{self, BufRead};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fabric::confirms::{Confirmed, ConfirmsOrder};
use crate::fabric::events::{Events, EventsOrder};
use crate::fabric::wire::{NatsCallee, NatsExchange, NatsOrder, NatsWishes};
use crate::fabric::wishes::{Wishes, WishesOrder};
use crate::floor::ends::{self, FloorCaller, FloorOrder};
use crate::floor::relay::{RelayOrder, serve_round};
use crate::load::{Driven, Exchange, Listener, Load, Paced, Traffic, Window, drive};
use crate::process::{Listening, PATIENCE, WorkerError, instruction, say};
use crate::wamp::callee::Callee;
use crate::wamp::caller::{Caller, PairOrder};

pub(crate) const ROLE: &str = "rpc";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Role {
    Relay(RelayOrder),
    Caller(PairOrder, LoadOrder),
    Callee(PairOrder),
    FloorCaller(FloorOrder, LoadOrder),
    FloorCallee(FloorOrder),
    Events(EventsOrder, LoadOrder),
    NatsCaller(NatsOrder, LoadOrder),
    NatsCallee(NatsOrder),
    NatsPublisher(NatsOrder, LoadOrder),
    NatsSubscriber(NatsOrder, LoadOrder),
    Wishes(WishesOrder, LoadOrder),
    Confirms(ConfirmsOrder, LoadOrder),
    /// In a callee's place, if a caller needs none.
    Nobody,
}

/// A caller's load; its window comes later, with [`Instruction::Go`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoadOrder {
    pub(crate) outstanding: usize,
    pub(crate) batch: u64,
    /// The time from one call to the next; without it the answer alone is waited for.
    pub(crate) every: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum EndReport {
    /// Connected, joined, registered: everything before the load.
    Ready,
    /// One batch of the document's.
    Batch {
        average_ms: f64,
    },
    Driven(Driven),
    Served(Traffic),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Instruction {
    Go(Window),
}

pub(crate) fn work(role: Role) -> Result<(), WorkerError> {
    match role {
        Role::Relay(order) => {
            let (listener, endpoint) = Listener::bind(&order.endpoint)?;
            say(&Listening { endpoint });
            loop {
                serve_round(&listener, &order)?;
            }
        }
        Role::Caller(order, load) => {
            let mut caller = Caller::join(&order)?;
            let driven = drive_on_command(&mut caller, load)?;
            // The results stand, whatever the router answers to the GOODBYE.
            let _ = caller.leave();
            say(&EndReport::Driven(driven));
            Ok(())
        }
        Role::Callee(order) => {
            let mut callee = Callee::register(&order)?;
            at_the_end_of_input(callee.leaver()?);
            say(&EndReport::Ready);
            say(&EndReport::Served(callee.serve()?.traffic));
            Ok(())
        }
        Role::FloorCaller(order, load) => {
            let stream = order.connect(true)?;
            stream.limit_waiting(Some(PATIENCE))?;
            report_driven(&mut FloorCaller::new(stream, order.lengths), load)
        }
        Role::FloorCallee(order) => {
            let stream = order.connect(false)?;
            let leaving = stream.try_clone()?;
            at_the_end_of_input(move || leaving.shut_down());
            say(&EndReport::Ready);
            say(&EndReport::Served(ends::callee(&stream, order.lengths)?));
            Ok(())
        }
        Role::Events(order, load) => report_driven(&mut Events::subscribe(&order)?, load),
        Role::NatsCaller(order, load) => report_driven(&mut NatsExchange::caller(&order)?, load),
        Role::NatsPublisher(order, load) => {
            report_driven(&mut NatsExchange::publisher(&order)?, load)
        }
        Role::NatsSubscriber(order, load) => report_driven(&mut NatsWishes::connect(&order)?, load),
        Role::Wishes(order, load) => report_driven(&mut Wishes::join(order)?, load),
        Role::Confirms(order, load) => {
            let mut publisher = Confirmed::open(order)?;
            let mut driven = drive_on_command(&mut publisher, load)?;
            driven.faults.lost += publisher.leave()?;
            say(&EndReport::Driven(driven));
            Ok(())
        }
        Role::NatsCallee(order) => {
            let callee = NatsCallee::subscribe(&order)?;
            at_the_end_of_input(callee.leaver()?);
            say(&EndReport::Ready);
            say(&EndReport::Served(callee.serve()?));
            Ok(())
        }
        Role::Nobody => {
            say(&EndReport::Ready);
            while instruction::<Instruction>()?.is_some() {}
            say(&EndReport::Served(Traffic::default()));
            Ok(())
        }
    }
}

fn report_driven(exchange: &mut impl Exchange, load: LoadOrder) -> Result<(), WorkerError> {
    let driven = drive_on_command(exchange, load)?;
    say(&EndReport::Driven(driven));
    Ok(())
}

fn drive_on_command(exchange: &mut impl Exchange, load: LoadOrder) -> Result<Driven, WorkerError> {
    say(&EndReport::Ready);
    let Some(Instruction::Go(window)) = instruction()? else {
        return Ok(Driven::default());
    };
    let every = load.every;
    let load = Load {
        outstanding: load.outstanding,
        batch: load.batch,
        window,
        operations_max: u64::MAX,
    };
    let mut report = |average_ms| say(&EndReport::Batch { average_ms });
    match every {
        Some(every) => drive(&mut Paced::new(exchange, every), &load, &mut report),
        None => drive(exchange, &load, &mut report),
    }
}

/// Runs `leave` on a thread of its own when the bench closes this worker's standard input.
fn at_the_end_of_input(leave: impl FnOnce() + Send + 'static) {
    thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            if line.is_err() {
                break;
            }
        }
        leave();
    });
}
