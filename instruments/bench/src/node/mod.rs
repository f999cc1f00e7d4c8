//! `bench node`: a whole node, started like a user's: controller, router, and the components of its directory. The
//! source document shows its log and a picture of the system's load; this bench records both, and the same of a peer in
//! the same directory.
//!
//! ```text
//!  a copy of the directory ─▶ spawn ─▶ transports accept ─▶ callers' first lines ─▶ warm-up
//!                                                                                      │
//!  SIGINT, exit code, survivors ◀─ usage by process ◀─ window ◀─ usage by process
//! ```
//!
//! The callers of the directory are the load, and the lines that they print its result: the bench adds no client of its
//! own. The native example has a floor besides: its pairs as plain processes around a router without a node.

mod goals;
mod lines;
mod options;
mod original;
mod present;
mod processes;
mod python;
mod round;
mod subject;

pub use options::NodeOptions;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::{Fault, Figures, Round, Series};
use crate::frame::{
    self, Column, Common, Goal, Host, Instrument, PeerState, Section, Site, Stage, Testbed,
};
use crate::machine::Placement;
use crate::peer::Peer;
use crate::peer::crossbar;
use crate::report::document;
use crate::subject::case;

use original::{NATIVE_NAME, Original};
use processes::Used;
use round::{Found, Turn};
use subject::Subject;

/// The name of the directories that the document has figures for.
const DOCUMENTED: &str = "rpc_roundtrip";

/// Measures, prints to standard output, and writes the results file if requested, in any outcome.
pub fn node(options: NodeOptions, host: Host) -> Result<bool, BenchError> {
    let options = options.on(host)?;
    let is_wanted = options.peers.contains(&Peer::Crossbar);
    let program = crossbar::find_on_path("crossbar").filter(|_| is_wanted);
    frame::run::run(Nodes {
        crossbar: Crossbar {
            is_wanted,
            version: program.as_deref().map(crossbar::version),
            program,
        },
        options,
        originals: Vec::new(),
        pairs: BTreeMap::new(),
    })
}

struct Nodes {
    options: NodeOptions,
    originals: Vec<Original>,
    crossbar: Crossbar,
    /// Of the measured directory: each subject's rounds, by the callers' titles.
    pairs: BTreeMap<String, Vec<Series>>,
}

/// The peer's program and version.
struct Crossbar {
    is_wanted: bool,
    program: Option<PathBuf>,
    version: Option<String>,
}

impl Crossbar {
    fn testbed(&self) -> Testbed {
        let peer = Peer::Crossbar;
        let version = self.version.as_deref();
        Testbed::of_peers(self.is_wanted.then(|| PeerState {
            name: peer.name(),
            is_present: self.program.is_some(),
            version,
            note: Some(peer.note(version)),
        }))
    }
}

/// A directory's node, or one of the pairs in it.
#[derive(Clone, Debug)]
struct Case {
    /// The directory's name.
    directory: String,
    /// The title of the pair's caller.
    title: Option<String>,
}

impl Case {
    /// The name of a pair as in all benches, if it is one of the document's.
    fn pair(&self) -> Option<String> {
        let title = self.title.as_ref()?;
        Some(match documented(title) {
            Some(case) => case.to_string(),
            None => title.to_ascii_lowercase(),
        })
    }

    /// Whether the document has figures of this node.
    fn is_documented(&self) -> bool {
        self.directory.starts_with(DOCUMENTED)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pair() {
            Some(pair) => write!(f, "{pair} {}", self.directory),
            None => f.write_str(&self.directory),
        }
    }
}

fn documented(title: &str) -> Option<case::Case> {
    let mut cases = case::Case::OF_THE_DOCUMENT.into_iter();
    cases.find(|case| case.document_prefix() == title)
}

/// The document's figure for a pair: the median of its batches' averages.
fn documented_us(title: &str) -> Option<f64> {
    documented(title).and_then(|case| document::rtt_us(&case))
}

impl Nodes {
    /// Stores the pairs' results of a round; the round itself is the node's.
    fn take(&mut self, subject: &Subject, at: usize, found: Found) -> Round {
        for (title, figures) in found.pairs {
            let all = self.pairs.entry(title).or_default();
            let which = all
                .iter()
                .position(|series| series.subject == subject.name());
            let which = which.unwrap_or_else(|| {
                all.push(Series::new(subject.name()));
                all.len() - 1
            });
            // So that rounds have the same number everywhere.
            while all[which].rounds.len() < at {
                all[which].push(Err("no lines".to_owned()));
            }
            all[which].push(match &found.fault {
                None => Ok(figures),
                Some(why) => Err(why.clone()),
            });
        }
        let mut node = found.node;
        if !found.processes.is_empty() {
            let processes = found.processes.iter().map(Used::to_json).collect();
            node = node.with_other("processes", processes);
        }
        match found.fault {
            None => Ok(node),
            Some(why) => Err(Fault::beside(why, node)),
        }
    }
}

impl Instrument for Nodes {
    const NAME: &'static str = "node";
    // The scheduler placed the document's node.
    const PLACEMENTS: &'static [Placement] = &[Placement::Free];
    const IS_PLACED: bool = false;
    // One that failed to start working is not started again.
    const GIVES_UP: bool = true;

    type Case = Case;
    type Subject = Subject;

    fn common(&self) -> &Common {
        &self.options.common
    }

    fn start(&mut self, site: &Site) -> Result<(), BenchError> {
        let options = &self.options;
        for directory in &options.directories {
            self.originals.push(Original::at(directory)?);
        }
        if options.directories.is_empty() && !options.native {
            self.originals.push(Original::example(&site.executable)?);
        }
        if options.directories.is_empty() || options.native {
            self.originals.push(Original::native()?);
        }
        let with_python = self
            .originals
            .iter()
            .filter(|original| original.needs_python());
        for original in with_python {
            python::check(original, options.python.as_deref(), &site.executable)?;
        }
        Ok(())
    }

    fn testbed(&self) -> Testbed {
        self.crossbar.testbed()
    }

    fn header(&self, _site: &Site) -> Vec<String> {
        let Common {
            runs,
            seconds,
            warm_up_seconds,
            ..
        } = &self.options.common;
        vec![format!(
            "{runs} round(s), in each a window of {seconds} s after {warm_up_seconds} s of warm-up; \
             placement free: neither a node nor its children are pinned"
        )]
    }

    fn settings(&self, _site: &Site) -> Value {
        let names = self.originals.iter().map(|original| &original.name);
        json!({ "directories": names.collect::<Vec<_>>() })
    }

    fn cases(&self) -> Result<Vec<Case>, BenchError> {
        let case = |original: &Original| Case {
            directory: original.name.clone(),
            title: None,
        };
        Ok(self.originals.iter().map(case).collect())
    }

    fn subjects(&mut self, _: &Stage<'_>, case: &Case) -> Result<Vec<Subject>, BenchError> {
        let mut subjects = vec![Subject::Crosstie];
        subjects.extend(self.crossbar.program.clone().map(Subject::Crossbar));
        if case.directory == NATIVE_NAME {
            subjects.push(Subject::Plain);
        }
        Ok(subjects)
    }

    fn round(&mut self, stage: &Stage<'_>, case: &Case, subject: &mut Subject) -> Round {
        let mut originals = self.originals.iter();
        let Some(original) = originals.find(|one| one.name == case.directory) else {
            return Err("its directory is not known".into());
        };
        let turn = Turn {
            site: stage.site,
            options: &self.options,
        };
        // A short name: a Unix socket's path may not be long.
        let directory = stage.site.directory.path().join("node");
        let found = round::round(&turn, subject, original, &directory);
        // A copy is useless after its round, and a large directory is copied often.
        let _ = std::fs::remove_dir_all(&directory);
        match found {
            Ok(found) => self.take(subject, stage.at, found),
            Err(BenchError::Server { why, .. }) => Err(why.into()),
            Err(error) if stage.site.stop.is_wished() => Err(error.to_string().into()),
            Err(error) => Err(Fault::end(error)),
        }
    }

    fn beside(&mut self, section: &Section<Case>) -> Vec<Section<Case>> {
        let pairs = std::mem::take(&mut self.pairs).into_iter();
        let of = |(title, series)| Section {
            case: Case {
                directory: section.case.directory.clone(),
                title: Some(title),
            },
            placement: section.placement,
            server_cores: section.server_cores,
            series,
            said: Vec::new(),
        };
        pairs.map(of).collect()
    }

    fn comparisons(&self, _site: &Site, section: &Section<Case>, _series: &Series) -> Figures {
        let case = &section.case;
        match &case.title {
            Some(title) => Figures::new().with_known("document_rtt_us", documented_us(title)),
            None if case.is_documented() => Figures::new()
                .with("document_node_cpu_percent", document::NODE_CPU_PERCENT)
                .with("document_node_rss_bytes", document::NODE_RSS_BYTES),
            None => Figures::new(),
        }
    }

    fn title(&self, section: &Section<Case>) -> String {
        format!("{} · free", section.case.directory)
    }

    fn columns(&self, _case: &Case) -> Vec<Column> {
        present::columns()
    }

    /// Pairs have a table of their own.
    fn has_rows(&self, section: &Section<Case>) -> bool {
        section.case.title.is_none()
    }

    fn below(&self, _site: &Site, sections: &[&Section<Case>]) -> Vec<String> {
        let seconds = self.options.common.seconds;
        match sections.split_first() {
            Some((node, pairs)) => present::below(seconds, node, pairs),
            None => Vec::new(),
        }
    }

    fn goals(&self, section: &Section<Case>, _before: &[Section<Case>]) -> Vec<Goal> {
        goals::goals(&section.case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::usual;

    fn nodes() -> Nodes {
        Nodes {
            options: NodeOptions {
                native: true,
                ..usual()
            },
            originals: Vec::new(),
            crossbar: Crossbar {
                is_wanted: false,
                program: None,
                version: None,
            },
            pairs: BTreeMap::new(),
        }
    }

    fn found(rate: f64, fault: Option<&str>) -> Found {
        let title = "WAMP-UDS-RawSocket-MessagePack".to_owned();
        Found {
            node: Figures::new().with("start_ms", 9.0),
            pairs: BTreeMap::from([(title, Figures::new().with("calls_per_s", rate))]),
            processes: Vec::new(),
            fault: fault.map(str::to_owned),
        }
    }

    #[test]
    fn pairs_have_the_rounds_of_their_node() {
        #[track_caller]
        fn check(first: Option<&str>, expected: f64, why: &str) {
            let mut nodes = nodes();
            let rounds = [found(10.0, first), found(30.0, None)];
            for (at, found) in rounds.into_iter().enumerate() {
                let counts = nodes.take(&Subject::Crosstie, at, found).is_ok();
                assert_eq!(counts, at > 0 || first.is_none());
            }
            let section = Section {
                case: Case {
                    directory: "example".to_owned(),
                    title: None,
                },
                placement: Some(Placement::Free),
                server_cores: 1,
                series: Vec::new(),
                said: Vec::new(),
            };
            let beside = nodes.beside(&section);
            assert_eq!(beside[0].case.to_string(), "uds-rawsocket-msgpack example");
            let pair = &beside[0].series[0];
            assert_eq!(pair.median("calls_per_s"), Some(expected));
            assert_eq!(pair.why(), why);
            let title = beside[0].case.title.as_deref();
            assert_eq!(title.and_then(documented_us), Some(483.0));
        }
        check(None, 20.0, "");
        check(Some("it ended"), 30.0, "round 1: it ended");
    }
}
