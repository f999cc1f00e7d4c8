//! The floor with its three parts as threads: every message sent is received, in both ways to wait, at any length and
//! any number in flight.

use std::thread;

use crate::floor::ends::{FloorCaller, FloorOrder, Lengths, callee};
use crate::floor::relay::{RelayOrder, Waiting, serve_round};
use crate::load::{Driven, Listener, Load, Window, drive};
use crate::subject::Endpoint;

const CALLS: u64 = 2_000;

#[track_caller]
fn check(
    unix: bool,
    waiting: Waiting,
    pairs: usize,
    threads: usize,
    in_flight: usize,
    lengths: Lengths,
) {
    let directory = tempfile::tempdir().unwrap();
    let endpoint = match unix {
        true => Endpoint::Unix(directory.path().join("relay.sock")),
        false => Endpoint::Tcp(([127, 0, 0, 1], 0).into()),
    };
    let (listener, endpoint) = Listener::bind(&endpoint).unwrap();
    let order = RelayOrder {
        endpoint: endpoint.clone(),
        waiting,
        pairs,
        threads,
        lengths,
    };
    let orders: Vec<FloorOrder> = (0..pairs as u32)
        .map(|pair| FloorOrder {
            endpoint: endpoint.clone(),
            pair,
            lengths,
        })
        .collect();
    let (driven, served) = thread::scope(|scope| {
        let relay = scope.spawn(move || serve_round(&listener, &order));
        let callees: Vec<_> = orders
            .iter()
            .map(|order| {
                scope.spawn(move || callee(&order.connect(false).unwrap(), lengths).unwrap())
            })
            .collect();
        let callers: Vec<_> = orders
            .iter()
            .map(|order| scope.spawn(move || call(order, in_flight)))
            .collect();
        let driven: Vec<Driven> = callers.into_iter().map(|one| one.join().unwrap()).collect();
        let served: u64 = callees
            .into_iter()
            .map(|one| one.join().unwrap().messages)
            .sum();
        relay.join().unwrap().unwrap();
        (driven, served)
    });
    for driven in driven {
        assert_eq!((driven.right, driven.faults.describe()), (CALLS, None));
    }
    assert_eq!(served, CALLS * pairs as u64);
}

fn call(order: &FloorOrder, outstanding: usize) -> Driven {
    let mut caller = FloorCaller::new(order.connect(true).unwrap(), order.lengths);
    let window = Window {
        start_ns: 0,
        end_ns: u64::MAX / 2,
    };
    let load = Load {
        outstanding,
        batch: 1_000,
        window,
        operations_max: CALLS,
    };
    drive(&mut caller, &load, &mut |_| {}).unwrap()
}

fn lengths(call: usize, invocation: usize, yielded: usize, result: usize) -> Lengths {
    Lengths {
        call,
        invocation,
        yielded,
        result,
    }
}

#[test]
fn one_after_the_other() {
    for waiting in [Waiting::Epoll, Waiting::Blocking] {
        for unix in [true, false] {
            check(unix, waiting, 1, 1, 1, lengths(48, 17, 16, 16));
            check(unix, waiting, 1, 1, 1, lengths(66, 30, 132, 28));
        }
    }
}

/// A message that takes several reads keeps its number.
#[test]
fn longer_than_a_read() {
    for waiting in [Waiting::Epoll, Waiting::Blocking] {
        for unix in [true, false] {
            let lengths = lengths(400_056, 400_022, 400_021, 400_020);
            check(unix, waiting, 1, 1, 1, lengths);
        }
    }
}

#[test]
fn several_in_flight() {
    check(true, Waiting::Blocking, 1, 1, 64, lengths(48, 17, 16, 16));
    check(true, Waiting::Epoll, 1, 1, 64, lengths(48, 17, 16, 16));
    check(false, Waiting::Epoll, 4, 2, 16, lengths(66, 30, 32, 28));
}

#[test]
fn more_in_flight_than_sockets_hold() {
    check(
        true,
        Waiting::Epoll,
        2,
        1,
        32,
        lengths(100_040, 100_010, 100_011, 100_012),
    );
}
