//! The source documents: the subject and hardware of each; its figures are in the files.

use crate::instrument::in_flight;
use crate::run::{Group, Run};

/// One document.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) benches: &'static [&'static str],
    pub(crate) title: &'static str,
    pub(crate) system: &'static str,
    pub(crate) hardware: &'static str,
    /// A note that a comparison needs.
    pub(crate) note: &'static str,
}

const DOCUMENTS: &[Document] = &[
    Document {
        benches: &["rpc", "node"],
        title: "Call Roundtrip Time",
        system: "Crossbar.io 0.12",
        hardware: "a 48-core machine with 2.95 TB of memory, PyPy",
        note: "The document prints the mean of each batch of about a thousand calls; its figure \
               here is the median of those means after warm-up; its headline is 0.6 and 1.2 ms. While \
               its node ran, its router kept 62.5 % of a core busy, its controller 30.5 %, a \
               container 21 to 34 %, with 207 to 221 MB resident in each of these processes.",
    },
    Document {
        benches: &["handshake", "echo"],
        title: "Opening and Closing Handshakes, Multicore",
        system: "Autobahn|Python, 1 to 4 worker processes",
        hardware: "a Core i7, PyPy",
        note: "wsperf with 8 threads and 1,000 to 2,000 handshakes in flight; it used 3.6 cores \
               itself. The figures of 1, 2 and 4 workers are medians of three runs each, 1 : 1.50 \
               : 1.56. Its longest run, 500,000 connections to 4 workers: 13,498/s, median 17.6 \
               ms, none failed. It has no echo rates.",
    },
    Document {
        benches: &["stream"],
        title: "Stream Testee",
        system: "Crossbar.io's stream testee and netserver, measured by netperf over loopback",
        hardware: "FreeBSD 10.1, Xeon E3-1240 v3 at 3.4 GHz",
        note: "netperf never reads what a stream test's peer sends back.",
    },
    Document {
        benches: &["accept"],
        title: "Accept rate",
        system: "Crossbar.io's stream testee",
        hardware: "a notebook with Windows 7",
        note: "60,000 connections in batches of 1,000 every 600 ms: 36 s of these are the delay.",
    },
    Document {
        benches: &["pubsub"],
        title: "Messaging performance on the Raspberry Pi",
        system: "Autobahn|Python's broker",
        hardware: "a Raspberry Pi 1, one 700 MHz ARM11 core, PyPy",
        note: "27 load profiles, numbered as results; a mean latency is given for five of them. \
               The headings of results 23 and 25 do not equal clients × batch × rate: 4,000 where \
               that is 2, and 1,000 where it is 1,200 events a second. At most it reached 6,000 \
               events a second (400 ms), 6,000 clients (850 ms), 28 Mbit/s (200 ms), 200 Hz (0.7 \
               ms).",
    },
    Document {
        benches: &["oslo"],
        title: "oslo.messaging RPC over a broker, with latency",
        system: "oslo.messaging's client and server over RabbitMQ",
        hardware: "virtual machines of 1 core and of 8 cores",
        note: "The least of five runs of 100 operations, by a clock that starts before the client \
               connects. Its delays are of what leaves one machine: the round trip grows by the \
               delay once. Without a delay its machines are 0.2 to 0.3 ms apart.",
    },
];

/// The document that a bench repeats.
pub(crate) fn document(bench: &str) -> Option<&'static Document> {
    DOCUMENTS
        .iter()
        .find(|document| document.benches.contains(&bench))
}

/// Figures of one of a document's systems in one case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    /// `document`, or the system's name if the document has several.
    pub(crate) subject: String,
    pub(crate) figures: Vec<(String, f64)>,
}

impl Figures {
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        let mut figures = self.figures.iter();
        figures
            .find(|(known, _)| known == name)
            .map(|(_, value)| *value)
    }

    /// The median, or the mean if there is no median.
    pub(crate) fn typical(&self, name: &str) -> Option<f64> {
        let mean = || self.value(&name.replace("_p50_", "_avg_"));
        self.value(name).or_else(mean)
    }
}

/// The prefix of the document's own figures in a bench's file.
pub(crate) const PREFIX: &str = "document_";

/// The document's figures for one group of a run, as the run's file repeats them.
pub(crate) fn figures_for(run: &Run, group: &Group) -> Vec<Figures> {
    if in_flight(run) > 1.0 && run.bench == "rpc" {
        // The document's calls are sequential.
        return Vec::new();
    }
    let mut all: Vec<Figures> = Vec::new();
    let mut add = |subject: &str, name: &str, value: f64| {
        let figure = (name.to_owned(), value);
        match all.iter_mut().find(|known| known.subject == subject) {
            Some(known) if known.value(name).is_none() => known.figures.push(figure),
            Some(_) => {}
            None => all.push(Figures {
                subject: subject.to_owned(),
                figures: vec![figure],
            }),
        }
    };
    for subject in &group.subjects {
        for (name, spread) in &subject.documented {
            let value = spread.median;
            match name.as_str() {
                "rtt_us" => {
                    add("document", "rtt_avg_us", value);
                    add("document", "rtt_p50_us", value);
                }
                "latency_ms" => add("document", "latency_avg_us", value * 1e3),
                "result" => {}
                name if subject.figures.contains_key(name) => add("document", name, value),
                // Several systems, each with the one figure of the case.
                name => {
                    let system = name.strip_suffix("_per_s").unwrap_or(name);
                    let figure = ["transactions_per_s", "megabits_per_s", "with_setup_per_s"];
                    let figure = figure
                        .iter()
                        .find(|name| subject.figures.contains_key(**name));
                    let figure = figure.copied().unwrap_or(name);
                    add(&format!("document: {system}"), figure, value);
                }
            }
        }
    }
    for (case, figures) in SCALING {
        if run.bench == "handshake" && group.case == *case {
            for (name, value) in *figures {
                add("document", name, *value);
            }
        }
    }
    all
}

/// The document's scaling table: the medians of its three runs for each number of workers.
const SCALING: &[(&str, &[(&str, f64)])] = &[
    (
        "workers-1",
        &[("handshakes_per_s", 8973.0), ("open_median_ms", 129.7)],
    ),
    (
        "workers-2",
        &[("handshakes_per_s", 13_438.0), ("open_median_ms", 74.3)],
    ),
    (
        "workers-4",
        &[("handshakes_per_s", 14_035.0), ("open_median_ms", 40.8)],
    ),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::frame::Frame;

    #[test]
    fn a_file_repeats_the_documents_figures() {
        #[track_caller]
        fn check(bench: &str, metrics: &serde_json::Value, expected: &[(&str, &str, f64)]) {
            let frame = json!({
                "bench": bench, "version": "", "commit": "",
                "machine": { "cpu": "", "cores": 1, "memory_bytes": 0, "os": "", "kernel": "" },
                "results": [{
                    "case": "c", "subject": "crosstie", "valid": true, "metrics": metrics
                }],
            });
            let run = Run::new("f", Frame::read(&frame.to_string()).unwrap());
            let found = figures_for(&run, &run.groups[0]);
            let found: Vec<(&str, &str, f64)> = found
                .iter()
                .flat_map(|f| {
                    f.figures
                        .iter()
                        .map(|(n, v)| (f.subject.as_str(), n.as_str(), *v))
                })
                .collect();
            assert_eq!(found, expected);
        }
        check(
            "rpc",
            &json!({ "rtt_us": { "p50": 20 }, "document_rtt_us": 483 }),
            &[
                ("document", "rtt_avg_us", 483.0),
                ("document", "rtt_p50_us", 483.0),
            ],
        );
        check(
            "accept",
            &json!({ "elapsed_ms": 38_000, "document_elapsed_ms": 47_545 }),
            &[("document", "elapsed_ms", 47_545.0)],
        );
        check(
            "stream",
            &json!({ "transactions_per_s": 1.0, "document_netserver_per_s": 114_823 }),
            &[("document: netserver", "transactions_per_s", 114_823.0)],
        );
        check("pubsub", &json!({ "events_per_s": 1.0 }), &[]);
    }
}
