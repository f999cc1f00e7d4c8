//! The metrics of links.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crosstie_rlinks::{Count, Side};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::rlink_state::RLink;

type Labels<const N: usize> = [(&'static str, String); N];

/// Registers the metrics of links, by worker.
pub(crate) fn register<'w>(
    registry: &mut Registry,
    workers: impl Iterator<Item = (&'w str, Vec<Arc<RLink>>)>,
) {
    let forwarded: Family<Labels<4>, Counter> = Family::default();
    let restarts: Family<Labels<2>, Counter> = Family::default();
    let connected: Family<Labels<2>, Gauge> = Family::default();
    let mirrors: Family<Labels<4>, Gauge> = Family::default();
    let calls: Family<Labels<3>, Gauge> = Family::default();
    let queued: Family<Labels<2>, Gauge> = Family::default();
    for (worker, links) in workers {
        for link in links {
            let status = link.status();
            let of_link = || {
                let worker = ("worker", worker.to_owned());
                [worker, ("link", status.link.id.clone())]
            };
            for what in Count::ALL {
                let ([worker, id], (kind, outcome)) = (of_link(), what.labels());
                let said = |text: &str| text.to_owned();
                let labels = [worker, id, ("kind", said(kind)), ("outcome", said(outcome))];
                let counted = link.counts.counted(what);
                forwarded.get_or_create(&labels).inc_by(counted);
            }
            let counted = link.counts.restarts.load(Ordering::Relaxed);
            restarts.get_or_create(&of_link()).inc_by(counted);
            let is_connected = i64::from(status.is_connected);
            connected.get_or_create(&of_link()).set(is_connected);
            let bytes = status.queued_bytes as i64;
            queued.get_or_create(&of_link()).set(bytes);
            for side in Side::BOTH {
                let at = || ("side", side.name().to_owned());
                for (kind, held) in [
                    ("subscription", status.topics),
                    ("registration", status.procedures),
                ] {
                    let [worker, id] = of_link();
                    let labels = [worker, id, at(), ("kind", kind.to_owned())];
                    let held = held[side as usize] as i64;
                    mirrors.get_or_create(&labels).set(held);
                }
                let [worker, id] = of_link();
                let pending = status.calls[side as usize] as i64;
                calls.get_or_create(&[worker, id, at()]).set(pending);
            }
        }
    }
    let help = "Messages that reached links, by kind and outcome";
    registry.register("rlink_messages", help, forwarded);
    let help = "Restarts of links";
    registry.register("rlink_restarts", help, restarts);
    let help = "1 while a link is connected";
    registry.register("rlink_connected", help, connected);
    let help = "Subscriptions and registrations that links hold, by the side where they hold them";
    registry.register("rlink_mirrors", help, mirrors);
    let help = "Open calls through links, by the side of their caller";
    registry.register("rlink_calls_pending", help, calls);
    let help = "Bytes queued for other routers";
    registry.register("rlink_queued_bytes", help, queued);
}
