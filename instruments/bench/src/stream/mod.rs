//! `bench stream`: a stream's transactions, throughput and connections, in netperf's terms.
//!
//! In each round the driver is a fresh process; every byte is checked.
//!
//! It never reports bytes that only fitted into buffers. A throughput counts the bytes that came back from an echo, or
//! those that a discarding server had read when it closed. A server that does not behave as its case requires is an
//! error, and so is a connection that would meet itself.

pub(crate) mod address;
pub(crate) mod case;
pub(crate) mod document;
pub(crate) mod driver;
pub(crate) mod floor;
mod goals;
pub(crate) mod local;
mod netperf;
mod options;
pub(crate) mod pattern;
mod present;
mod round;
mod subjects;
pub(crate) mod testee;
mod throughput;
mod transactions;
pub(crate) mod watch;

pub use options::StreamOptions;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::{Figures, Round, Series};
use crate::frame::{
    self, Column, Common, FLOOR, Goal, Host, Instrument, Limit, PeerState, Section, Site, Stage,
    Testbed,
};
use crate::machine::Placement;
use crate::report::json::FLOOR_SUSPECT;
use crate::report::table::thousands;
use crate::subject::Endpoint;

use case::{Case, Test};
use goals::{figure, reference};
use netperf::Netperf;
use subjects::Subject;

/// Measures, prints to standard output, and writes the results file if requested. Results from before an error are
/// printed and written all the same.
pub fn stream(options: StreamOptions, host: Host) -> Result<bool, BenchError> {
    let options = options.on(host)?;
    let netserver = Netserver {
        is_wanted: options.has_netserver(),
        is_behind_link: options.common.network.link.is_some(),
        found: options.has_netserver().then(Netperf::find).flatten(),
    };
    frame::run::run(Streams {
        options,
        netserver,
        listening: Vec::new(),
    })
}

struct Streams {
    options: StreamOptions,
    netserver: Netserver,
    listening: Vec<Listening>,
}

/// The address of a subject, for netperf's block.
struct Listening {
    /// The section's title, and the subject.
    of: (String, String),
    endpoint: Endpoint,
}

struct Netserver {
    is_wanted: bool,
    is_behind_link: bool,
    found: Option<Netperf>,
}

impl Netserver {
    fn testbed(&self) -> Testbed {
        let why = match (&self.found, self.is_behind_link) {
            (None, _) => Some(format!("absent. {}", netperf::INSTALLATION)),
            (Some(_), true) => {
                Some("not over a link, which its data connections would go around".to_owned())
            }
            (Some(_), false) => None,
        };
        Testbed::of_peers(self.is_wanted.then(|| PeerState {
            name: netperf::NAME,
            is_present: self.found.is_some(),
            version: None,
            note: why.map(|why| format!("{}: {why}", netperf::NAME)),
        }))
    }
}

/// The document's network that is like ours; it has none with a delay line of a given delay.
fn network(options: &StreamOptions) -> Option<document::Network> {
    let network = &options.common.network;
    match (&network.link, network.netns) {
        (Some(_), _) => None,
        (None, false) => Some(document::Network::Loopback),
        (None, true) => Some(document::Network::TenGigabit),
    }
}

/// The document's figures for a case.
fn document_of(options: &StreamOptions, case: &Case) -> Vec<document::Figure> {
    let plain = options.request_bytes == 1 || case.test == Test::Stream;
    match network(options) {
        Some(network) if plain => document::figures(case, network),
        _ => Vec::new(),
    }
}

impl Instrument for Streams {
    const NAME: &'static str = "stream";
    // A server that hangs hangs again.
    const GIVES_UP: bool = true;

    type Case = Case;
    type Subject = Subject;

    fn common(&self) -> &Common {
        &self.options.common
    }

    fn testbed(&self) -> Testbed {
        self.netserver.testbed()
    }

    fn load(&self) -> Option<String> {
        Some(format!(
            "one connection at a time, {} byte(s) each way, sends of {} bytes",
            self.options.request_bytes,
            thousands(self.options.send_bytes as f64),
        ))
    }

    fn settings(&self, _site: &Site) -> Value {
        json!({
            "request_bytes": self.options.request_bytes,
            "send_bytes": self.options.send_bytes,
        })
    }

    fn cases(&self) -> Result<Vec<Case>, BenchError> {
        self.options.definite_cases()
    }

    fn subjects(&mut self, stage: &Stage<'_>, case: &Case) -> Result<Vec<Subject>, BenchError> {
        subjects::start(&self.options, stage, *case, self.netserver.found.as_ref())
    }

    fn round(&mut self, stage: &Stage<'_>, case: &Case, subject: &mut Subject) -> Round {
        Ok(subject.round(&self.options, stage, *case)?)
    }

    /// Whether the floor was too slow to divide by, on a machine for which that is known.
    fn end(&mut self, stage: &Stage<'_>, section: &mut Section<Case>, subjects: Vec<Subject>) {
        let title = section.title();
        let listening = subjects.iter().map(|subject| Listening {
            of: (title.clone(), subject.name.clone()),
            endpoint: subject.endpoint().clone(),
        });
        self.listening.extend(listening);
        let is_plain = stage.site.network.description().is_none();
        if stage.site.machine.cpu != reference::CPU || self.options.request_bytes > 512 || !is_plain
        {
            return;
        }
        let expected = section
            .placement
            .and_then(|of| reference::per_s(&section.case, of));
        let mut series = section.series.iter_mut();
        let Some(floor) = series.find(|series| series.subject == FLOOR) else {
            return;
        };
        if let (Some(expected), Some(reached)) = (expected, floor.median("transactions_per_s"))
            && reached < expected * reference::TOLERANCE
        {
            floor.suspect = Some(format!(
                "{FLOOR_SUSPECT}: {}/s, but an idle machine of this kind reaches {}",
                thousands(reached),
                thousands(expected)
            ));
        }
    }

    /// Of a throughput. If both share one core, neither is idle, and the figure is the sum of both.
    fn limit(&self, section: &Section<Case>, _series: &Series) -> Option<Limit> {
        let is_apart = section.placement != Some(Placement::SameCore);
        (is_apart && !section.case.test.is_transactional()).then_some(Limit {
            busy: &["server_busy_cores"],
            cores: 1.0,
        })
    }

    fn comparisons(&self, _site: &Site, section: &Section<Case>, series: &Series) -> Figures {
        let mut figures = section.over_floor(series, &[figure(section.case.test)]);
        for document::Figure { server, per_s } in document_of(&self.options, &section.case) {
            figures.set(&format!("document_{server}_per_s"), per_s);
        }
        figures
    }

    fn columns(&self, case: &Case) -> Vec<Column> {
        present::columns(case)
    }

    fn above(&self, _site: &Site, sections: &[&Section<Case>]) -> Vec<String> {
        let blocks = sections.iter();
        blocks
            .flat_map(|section| present::blocks(&self.options, &self.listening, section))
            .collect()
    }

    fn below(&self, _site: &Site, sections: &[&Section<Case>]) -> Vec<String> {
        let lines = sections.iter();
        lines
            .flat_map(|section| present::below(&self.options, section))
            .collect()
    }

    fn goals(&self, section: &Section<Case>, _before: &[Section<Case>]) -> Vec<Goal> {
        goals::goals(&section.case)
    }
}
