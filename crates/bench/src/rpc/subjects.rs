//! The routers of a run, as calls go through them.

use super::round::Ends;
use super::worker::{LoadOrder, Role};
use super::{Bench, RpcOptions};
use crate::error::BenchError;
use crate::subject::router::RouterOptions;
use crate::subject::routers::{Routers, Wanted};
use crate::subject::target::Target;
use crate::wamp::caller::PairOrder;

/// Starts everything that is measured.
pub(super) fn start(bench: &Bench) -> Result<Routers, BenchError> {
    let options = &bench.options;
    let wanted = Wanted {
        router: RouterOptions {
            executable: bench.executable.clone(),
            threads: options.router_threads,
            spin: options.spin,
        },
        url: options.url.as_ref(),
        router_pids: &options.router_pids,
        realm: &options.realm,
        peers: &options.peers,
        cases: &bench.cases,
        directory: bench.directory.path(),
    };
    Routers::start(&wanted, &bench.network)
}

/// The pairs of one round, with procedures that no earlier round has used.
pub(super) fn ends(target: &Target, options: &RpcOptions, round: usize) -> Vec<Ends> {
    let load = LoadOrder {
        outstanding: options.outstanding,
        batch: options.batch,
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
