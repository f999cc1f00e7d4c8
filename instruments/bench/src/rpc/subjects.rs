//! The participants: routers, as the calls pass them, and the floor beside them.

use std::time::Duration;

use super::baseline::Baseline;
use super::options::RpcOptions;
use super::round::{Ends, Operation, Plan};
use super::worker::{LoadOrder, Role};
use crate::frame::{FLOOR, Stage, Subject};
use crate::process::Place;
use crate::subject::{Reachable, Target};
use crate::wamp::caller::PairOrder;

/// One of them.
pub(super) enum RpcSubject {
    Router(Reachable),
    Floor(Baseline),
}

impl Subject for RpcSubject {
    fn name(&self) -> &str {
        match self {
            Self::Router(router) => &router.name,
            Self::Floor(_) => FLOOR,
        }
    }
}

/// The plan of a round with these ends.
pub(super) fn plan<'a>(
    options: &RpcOptions,
    stage: &Stage<'a>,
    ends: &'a [Ends],
    place: &'a Place,
    subject: &'a [u32],
) -> Plan<'a> {
    Plan {
        executable: &stage.site.executable,
        ends,
        operation: Operation::Call,
        place,
        subject,
        beside: &[],
        warm_up: Duration::from_secs_f64(options.common.warm_up_seconds),
        measured: Duration::from_secs_f64(options.common.seconds),
        stop: &stage.site.stop,
    }
}

/// The pairs of one round, with procedures that no earlier round has used.
pub(super) fn ends(target: &Target, options: &RpcOptions, round: usize) -> Vec<Ends> {
    let load = LoadOrder {
        every: options.every(),
        outstanding: options.outstanding,
        batch: options.batch(),
    };
    (0..options.pairs)
        .map(|pair| {
            let order = PairOrder {
                target: target.clone(),
                procedure: procedure(round, pair),
                payload_bytes: options.payload_bytes,
            };
            Ends {
                callee: Role::Callee(order.clone()),
                caller: Role::Caller(order, load),
            }
        })
        .collect()
}

/// A name that differs by bench process, round and pair, and always has the same length.
pub(super) fn procedure(round: usize, pair: usize) -> String {
    format!(
        "crosstie.bench.p{:07}.r{round:03}.c{pair:03}",
        std::process::id()
    )
}
