//! The floor of a case: a relay in the router's place, and ends that move the same bytes.

use std::time::Duration;

use super::P50;
use super::options::RpcOptions;
use super::round::{Ends, Plan, run};
use super::subjects::{plan, procedure};
use super::worker::{LoadOrder, ROLE, Role};
use crate::error::BenchError;
use crate::floor::ends::{FloorOrder, Lengths, reference};
use crate::floor::relay::{RelayOrder, Waiting};
use crate::frame::{FLOOR, Section, Stage};
use crate::process::{Listening, Workers};
use crate::report::json::FLOOR_SUSPECT;
use crate::report::table::number;
use crate::subject::{Case, Endpoint, Socket};

/// A running relay and the parameters of its ends.
pub(super) struct Baseline {
    /// Ends with this.
    _relay: Workers<Listening>,
    pub(super) processes: Vec<u32>,
    pub(super) ends: Vec<Ends>,
    waiting: Waiting,
    /// The other way to wait, and both medians of the probe: this one's first.
    probed: Option<(Waiting, f64, f64)>,
    lengths: Lengths,
}

/// Long enough for some thousand round trips on one core.
const PROBE: Duration = Duration::from_millis(300);
const PROBE_WARM_UP: Duration = Duration::from_millis(100);
/// Wider than for a reference: a probe is short, and the better of two.
const PROBE_TOLERANCE: f64 = 1.3;

impl Baseline {
    /// Starts the better relay for this case. A short probe determines it, unless only the one with epoll can serve.
    pub(super) fn start(
        options: &RpcOptions,
        stage: &Stage<'_>,
        case: Case,
    ) -> Result<Self, BenchError> {
        let lengths = Lengths::of(&case, &procedure(0, 0), options.payload_bytes)?;
        let mut epoll = Self::with(options, stage, case, lengths, Waiting::Epoll)?;
        if options.in_flight() > 1 {
            return Ok(epoll);
        }
        let mut blocking = Self::with(options, stage, case, lengths, Waiting::Blocking)?;
        let epoll_us = epoll.probe(options, stage);
        let blocking_us = blocking.probe(options, stage);
        // A relay whose probe failed shows a median of zero; its rounds will give the reason.
        if blocking_us > 0.0 && (epoll_us == 0.0 || blocking_us < epoll_us) {
            blocking.probed = Some((Waiting::Epoll, blocking_us, epoll_us));
            return Ok(blocking);
        }
        epoll.probed = Some((Waiting::Blocking, epoll_us, blocking_us));
        Ok(epoll)
    }

    fn with(
        options: &RpcOptions,
        stage: &Stage<'_>,
        case: Case,
        lengths: Lengths,
        waiting: Waiting,
    ) -> Result<Self, BenchError> {
        let site = stage.site;
        let endpoint = match case.socket {
            Socket::Unix => {
                let name = format!("floor-{}.sock", waiting.name());
                Endpoint::Unix(site.directory.path().join(name))
            }
            Socket::Tcp => Endpoint::Tcp((site.network.server_ip(), 0).into()),
        };
        let order = RelayOrder {
            endpoint,
            waiting,
            pairs: options.pairs,
            threads: options.routers.threads.min(options.pairs),
            lengths,
        };
        let mut relay = Workers::default();
        let (name, order) = ("the floor's relay", Role::Relay(order));
        let endpoint =
            relay.start_server(name, &site.executable, ROLE, &stage.servers(), &order)?;
        let endpoint = site.network.reach(&endpoint)?;
        let load = LoadOrder {
            every: options.every(),
            outstanding: options.outstanding,
            batch: options.batch(),
        };
        let ends = (0..u32::try_from(options.pairs).unwrap_or(u32::MAX))
            .map(|pair| {
                let order = FloorOrder {
                    endpoint: endpoint.clone(),
                    pair,
                    lengths,
                };
                Ends {
                    callee: Role::FloorCallee(order.clone()),
                    caller: Role::FloorCaller(order, load),
                }
            })
            .collect();
        let processes = relay.processes();
        Ok(Self {
            _relay: relay,
            processes,
            ends,
            waiting,
            probed: None,
            lengths,
        })
    }

    /// The median round trip of a short round.
    fn probe(&self, options: &RpcOptions, stage: &Stage<'_>) -> f64 {
        let place = stage.clients();
        let plan = Plan {
            warm_up: PROBE_WARM_UP,
            measured: PROBE,
            ..plan(options, stage, &self.ends, &place, &self.processes)
        };
        let found = run(&plan, &mut |_| {}).ok();
        found.and_then(|found| found.value(P50)).unwrap_or(0.0)
    }

    /// A description of the floor, for the reader.
    pub(super) fn description(&self) -> String {
        let Lengths {
            call,
            invocation,
            yielded,
            result,
        } = self.lengths;
        let mut text = format!(
            "  floor: a relay that waits by {} and forwards bytes, {call} → {invocation} → \
             {yielded} → {result} per call",
            self.waiting.name()
        );
        if let Some((other, own_us, other_us)) = self.probed {
            text += &format!(
                " (probed at {} µs; {}: {} µs)",
                number(own_us),
                other.name(),
                number(other_us)
            );
        }
        text
    }

    /// Whether this floor was too slow to divide by.
    pub(super) fn suspicion(
        &self,
        options: &RpcOptions,
        stage: &Stage<'_>,
        section: &Section<Case>,
    ) -> Option<String> {
        let p50_us = section.subject(FLOOR)?.median(P50)?;
        let slower_than = |expected_us: f64, tolerance: f64, what: &str| {
            (p50_us > expected_us * tolerance).then(|| {
                let (p50_us, expected_us) = (number(p50_us), number(expected_us));
                format!("{FLOOR_SUSPECT}: {p50_us} µs, but {what} {expected_us}")
            })
        };
        // The references are for sequential small calls over the loopback, on one kind of machine.
        if stage.site.machine.cpu == reference::CPU
            && options.in_flight() == 1
            && stage.site.network.description().is_none()
            && self.lengths.longest() <= 512
        {
            let reference_us = reference::rtt_us(&section.case, section.placement?)?;
            let what = "an idle machine of this kind takes";
            return slower_than(reference_us, reference::TOLERANCE, what);
        }
        // On any other the floor is at least compared with its own figure of a moment before.
        let (_, probed_us, _) = self.probed?;
        slower_than(probed_us, PROBE_TOLERANCE, "its own probe took")
    }
}
