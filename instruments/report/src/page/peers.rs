//! A sentence for each peer: its cost in multiples of ours, over all cases in which both were measured.

use maud::{Markup, html};

use crate::instrument::headlines;
use crate::metric::{Metric, number};
use crate::run::{Group, OWN, Run, Spread};

/// The benches' names of the peers that they start, and the peers' usual names.
const PEERS: [(&str, &str); 5] = [
    ("crossbar", "Crossbar.io"),
    ("rabbitmq", "RabbitMQ"),
    ("nginx", "nginx"),
    ("netserver", "netperf's netserver"),
    ("autobahn", "Autobahn"),
];

pub(super) fn sentences(runs: &[&Run]) -> Markup {
    let found = PEERS.iter().filter_map(|(peer, name)| {
        let ratios: Vec<f64> = runs
            .iter()
            .flat_map(|run| {
                let headlines = headlines(run);
                let groups = run.groups.iter();
                groups.filter_map(move |group| cost(group, peer, &headlines))
            })
            .collect();
        Some((name, ratios.len(), Spread::of(ratios)?))
    });
    let found: Vec<_> = found.collect();
    html! {
        @if !found.is_empty() {
            ul.peers {
                @for (name, cases, spread) in &found {
                    li {
                        strong { (name) " costs " (number(spread.median)) " times as much as Crosstie" }
                        @if *cases == 1 { ", in one case." }
                        @else {
                            ", the median of " (cases) " cases: "
                            (number(spread.min)) " to " (number(spread.max)) " times."
                        }
                    }
                }
            }
            p {
                "A cost is the time or the processor time of an operation. For a rate the cost is the time \
                 between two operations."
            }
        }
    }
}

/// The cost of a peer's operation divided by that of ours, by the first figure that both have.
fn cost(group: &Group, peer: &str, headlines: &[impl AsRef<str>]) -> Option<f64> {
    let of = |name: &str| {
        let mut subjects = group.subjects.iter();
        subjects.find(|subject| subject.name == name && subject.valid)
    };
    let (own, peer) = (of(OWN)?, of(peer)?);
    headlines.iter().find_map(|headline| {
        let headline = headline.as_ref();
        let ratio = match Metric::of(headline).less_is_better() {
            true => peer.over(own, headline),
            false => own.over(peer, headline),
        };
        ratio.map(|ratio| ratio.median)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::frame::Frame;

    #[test]
    fn a_peer_has_a_sentence() {
        let row = |case: &str, subject: &str, calls_per_s: f64, p50: f64, valid: bool| {
            json!({
                "case": case, "subject": subject, "placement": "split", "valid": valid, "why": "",
                "metrics": { "calls_per_s": calls_per_s, "rtt_us": { "p50": p50 } },
            })
        };
        let frame = json!({
            "bench": "rpc", "version": "", "commit": "",
            "machine": { "cpu": "", "cores": 1, "memory_bytes": 0, "os": "", "kernel": "" },
            "results": [
                row("uds-rawsocket-msgpack", "crosstie", 40.0, 25.0, true),
                row("uds-rawsocket-msgpack", "floor", 50.0, 20.0, true),
                row("uds-rawsocket-msgpack", "crossbar", 10.0, 150.0, true),
                row("tcp-websocket-json", "crosstie", 40.0, 40.0, true),
                row("tcp-websocket-json", "crossbar", 10.0, 400.0, true),
                // Does not count.
                row("tcp-websocket-cbor", "crosstie", 40.0, 40.0, true),
                row("tcp-websocket-cbor", "crossbar", 10.0, 9_000.0, false),
            ],
        });
        let run = Run::new("f", Frame::read(&frame.to_string()).unwrap());
        let page = sentences(&[&run]).into_string();
        for text in [
            "Crossbar.io costs ",
            " times as much as Crosstie",
            "2 cases",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
        assert!(!page.contains("floor") && !page.contains("225"), "{page}");
        assert_eq!(sentences(&[]).into_string(), "");
    }
}
