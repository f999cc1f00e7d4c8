//! Counters of HTTP requests that are bridged or forwarded, for `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The counters of one service or component. Those with one kind and name share them, so that they survive a restart of
/// their transport.
pub struct RequestCounts {
    kind: &'static str,
    /// Distinguishes it from others of its kind: a realm, a component's id, a server.
    name: String,
    open: AtomicI64,
    outcomes: [AtomicU64; Outcome::ALL.len()],
    /// Total duration from request to answer.
    nanoseconds: AtomicU64,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A normal answer.
    Answered,
    /// A WAMP error.
    Error,
    /// Rejected: invalid or not permitted.
    Refused,
    /// The maximum of concurrent requests was reached.
    Full,
    /// The server or callee was absent, or broke off.
    Unavailable,
    /// The server did not answer in time.
    TimedOut,
    /// The server answered with an unexpected status.
    Unexpected,
    /// The client no longer waited for the answer.
    Canceled,
}

impl Outcome {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Answered, "answered"),
        (Self::Error, "error"),
        (Self::Refused, "refused"),
        (Self::Full, "full"),
        (Self::Unavailable, "unavailable"),
        (Self::TimedOut, "timed_out"),
        (Self::Unexpected, "unexpected"),
        (Self::Canceled, "canceled"),
    ];
}

/// The counters of a router's services and components: as many as a configuration ever named.
#[derive(Default)]
pub struct Requests(Mutex<Vec<Arc<RequestCounts>>>);

impl Requests {
    /// The counters of a service or component, created with the first call.
    pub fn of(&self, kind: &'static str, name: &str) -> Arc<RequestCounts> {
        let mut requests = self.0.lock();
        if let Some(known) = requests.iter().find(|known| known.is_of(kind, name)) {
            return Arc::clone(known);
        }
        let counts = Arc::new(RequestCounts::new(kind, name));
        requests.push(Arc::clone(&counts));
        counts
    }

    /// All of these counters, in the order of their creation.
    pub fn all(&self) -> Vec<Arc<RequestCounts>> {
        self.0.lock().clone()
    }
}

/// A request, counted when this is dropped.
pub struct Counted {
    counts: Arc<RequestCounts>,
    begun: Instant,
    /// Canceled, unless an outcome is set.
    outcome: Outcome,
}

impl RequestCounts {
    fn new(kind: &'static str, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            open: AtomicI64::new(0),
            outcomes: Default::default(),
            nanoseconds: AtomicU64::new(0),
        }
    }

    fn is_of(&self, kind: &str, name: &str) -> bool {
        self.kind == kind && self.name == name
    }

    /// Begins a request.
    pub fn begin(self: &Arc<Self>) -> Counted {
        self.open.fetch_add(1, Ordering::Relaxed);
        Counted {
            counts: Arc::clone(self),
            begun: Instant::now(),
            outcome: Outcome::Canceled,
        }
    }
}

impl Counted {
    /// Sets the outcome.
    pub fn end(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let counts = &self.counts;
        let taken = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        counts.nanoseconds.fetch_add(taken, Ordering::Relaxed);
        counts.outcomes[self.outcome as usize].fetch_add(1, Ordering::Relaxed);
        counts.open.fetch_sub(1, Ordering::Relaxed);
    }
}

type Labels<const N: usize> = [(&'static str, String); N];

/// Registers them, by worker.
pub fn register<'w>(
    registry: &mut Registry,
    workers: impl Iterator<Item = (&'w str, Vec<Arc<RequestCounts>>)>,
) {
    let requests: Family<Labels<4>, Counter> = Family::default();
    let seconds: Family<Labels<3>, Counter<f64, AtomicU64>> = Family::default();
    let open: Family<Labels<3>, Gauge> = Family::default();
    for (worker, all) in workers {
        for counts in all {
            let labels = || {
                let kind = ("kind", counts.kind.to_owned());
                [
                    ("worker", worker.to_owned()),
                    kind,
                    ("service", counts.name.clone()),
                ]
            };
            for (outcome, name) in Outcome::ALL {
                let [worker, kind, of] = labels();
                let labels = [worker, kind, of, ("outcome", name.to_owned())];
                let counted = counts.outcomes[outcome as usize].load(Ordering::Relaxed);
                requests.get_or_create(&labels).inc_by(counted);
            }
            let nanoseconds = counts.nanoseconds.load(Ordering::Relaxed);
            let taken = seconds.get_or_create(&labels());
            taken.inc_by(nanoseconds as f64 / 1e9);
            let now = counts.open.load(Ordering::Relaxed);
            open.get_or_create(&labels()).set(now);
        }
    }
    let help = "Finished HTTP requests of bridges and proxies, by outcome";
    registry.register("http_requests", help, requests);
    let help = "Total duration of finished HTTP requests of bridges and proxies";
    registry.register("http_request_seconds", help, seconds);
    let help = "HTTP requests of bridges and proxies without an answer";
    registry.register("http_requests_open", help, open);
}
