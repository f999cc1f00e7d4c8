//! The histograms of routers: which there are, and their values by labels. The metrics and the management realm show
//! them.

use std::cmp::Reverse;
use std::sync::Arc;

use crosstie_broker::{VhostTimes, vhost_times};
use crosstie_collections::Histogram;
use crosstie_front::counters::{Spoken, turns};
use crosstie_transport::fan_outs;

use crate::registry::{Registry, brokers, realms};
use crate::router::Router;

/// Names and values of a series' labels.
pub(crate) type Labels = Vec<(&'static str, String)>;

crosstie_collections::named! {
    /// The unit of a histogram's values.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Unit: symbol {
        Microseconds = "us",
        Milliseconds = "ms",
        Bytes = "bytes",
    }
}

/// A histogram by labels.
#[derive(Clone, Debug)]
pub struct Series {
    /// As in the metrics, without `crosstie_` and the unit.
    pub name: &'static str,
    pub help: &'static str,
    pub unit: Unit,
    pub by_labels: Vec<(Labels, Histogram)>,
}

impl Series {
    /// The values of all labels.
    pub fn sum(&self) -> Histogram {
        let mut sum = Histogram::default();
        for (_, values) in &self.by_labels {
            sum.add(values);
        }
        sum
    }

    /// Sorts by the number of values, those with most of them first.
    pub fn sort(&mut self) {
        self.by_labels
            .sort_by_cached_key(|(labels, values)| (Reverse(values.count()), labels.clone()));
    }
}

/// The histograms of these routers and their process.
pub fn histograms(routers: &[&Router]) -> Vec<Series> {
    let routers = routers.iter().map(|router| Arc::clone(&router.state));
    let routers: Vec<Arc<Registry>> = routers.collect();
    all(&routers, vhost_times(brokers(&routers))).collect()
}

/// The same for vhosts whose times are known.
pub(crate) fn all<'v>(
    routers: &[Arc<Registry>],
    vhosts: impl Iterator<Item = (&'v str, VhostTimes)>,
) -> impl Iterator<Item = Series> {
    let of_processes = of_wamp(routers).into_iter().chain(of_threads());
    of_processes.chain(of_amqp(vhosts))
}

pub(crate) fn labels(worker: &str, more: &[(&'static str, &str)]) -> Labels {
    let own = [("worker", worker)];
    let all = own.iter().chain(more);
    all.map(|(name, value)| (*name, (*value).to_owned()))
        .collect()
}

/// Calls by the role of the caller, and sizes of messages by realm.
fn of_wamp(routers: &[Arc<Registry>]) -> [Series; 2] {
    let (mut calls, mut sizes) = (Vec::new(), Vec::new());
    for (router, realm) in realms(routers) {
        let (worker, name) = (router.id(), realm.name());
        let of_realm = labels(worker, &[("realm", name)]);
        sizes.push((of_realm, realm.messages.sizes()));
        for (role, times) in realm.call_times() {
            let of_role = labels(worker, &[("realm", name), ("role", &role)]);
            calls.push((of_role, times));
        }
    }
    [
        Series {
            name: "call_duration",
            help: "Time from a CALL to the answer of its callee, by the role of the caller",
            unit: Unit::Microseconds,
            by_labels: calls,
        },
        Series {
            name: "message_size",
            help: "Sizes of WAMP messages received",
            unit: Unit::Bytes,
            by_labels: sizes,
        },
    ]
}

/// Turns and fan-outs of the process's threads.
fn of_threads() -> [Series; 2] {
    let spoken = [(Spoken::Wamp, "wamp"), (Spoken::Amqp, "amqp")];
    let turns = spoken.map(|(spoken, name)| (vec![("protocol", name.to_owned())], turns(spoken)));
    [
        Series {
            name: "turn_duration",
            help: "Time for which an input held its thread",
            unit: Unit::Microseconds,
            by_labels: turns.into(),
        },
        Series {
            name: "fan_out_duration",
            help: "Time until output for more than 8 connections was sent",
            unit: Unit::Microseconds,
            by_labels: vec![(Vec::new(), fan_outs())],
        },
    ]
}

/// Commits, confirms and waits by vhost.
fn of_amqp<'v>(vhosts: impl Iterator<Item = (&'v str, VhostTimes)>) -> [Series; 3] {
    let [mut commits, mut confirms, mut waits] = [const { Vec::new() }; 3];
    for (worker, vhost) in vhosts {
        let of_vhost = labels(worker, &[("vhost", &vhost.name)]);
        commits.push((of_vhost.clone(), vhost.commits));
        confirms.push((of_vhost.clone(), vhost.confirms));
        waits.push((of_vhost, vhost.queue_waits));
    }
    [
        Series {
            name: "amqp_commit_duration",
            help: "Time from a record to its commit, measured for one record at a time",
            unit: Unit::Microseconds,
            by_labels: commits,
        },
        Series {
            name: "amqp_confirm_duration",
            help: "Time from a publication to its confirm behind a commit, measured for one publication at a time",
            unit: Unit::Microseconds,
            by_labels: confirms,
        },
        Series {
            name: "amqp_queue_wait",
            help: "Time that messages waited in a queue until they were sent",
            unit: Unit::Milliseconds,
            by_labels: waits,
        },
    ]
}
