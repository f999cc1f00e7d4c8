//! `bench hostile`: the damage that one peer can do to all others, for any WAMP router and any AMQP broker.
//!
//! ```text
//!  witness ──calls, events, joins, /health, messages, connects──▶ ┌────────┐
//!    (well-behaved, with the time that each waited)               │ router │
//!  attacker ──one attack that should harm no other client───────▶ └────────┘
//!    (raw bytes, bounded in count and time)                        CPU, memory
//! ```
//!
//! Attacker and witness are processes of their own. The witness runs alone first, then beside one attack after the
//! other, each on a freshly started node. An attack that a bound refuses has failed, which speaks for the router: the
//! reason for the refusal is printed.

mod amqp;
pub(crate) mod attacker;
mod attacks;
pub(crate) mod catalogue;
mod figures;
pub(crate) mod options;
mod pages;
mod present;
mod round;
mod strike;
mod subject;
mod watch;
mod ways;
pub(crate) mod witness;

pub use options::HostileOptions;

use std::fmt;
use std::fs;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::{Round, Series};
use crate::frame::{self, Common, Host, Instrument, Section, Site, Stage, Testbed, instrument};
use crate::machine::Placement;

use catalogue::{Attack, Setting};
use subject::{Started, Starting, Subject};

/// The name of the case with the witness alone.
const IDLE: &str = "idle";

/// Measures, prints to standard output, and writes the results file if requested.
pub fn hostile(options: HostileOptions, host: Host) -> Result<bool, BenchError> {
    if options.is_list {
        present::list()?;
        return Ok(true);
    }
    frame::run::run(Hostile {
        options: options.on(host)?,
        left_out: Vec::new(),
        without: Vec::new(),
        absent: Vec::new(),
    })
}

struct Hostile {
    options: HostileOptions,
    /// The subjects whose attacks were left out, and the reasons.
    left_out: Vec<(Subject, String)>,
    /// The parts that the witness lacked.
    without: Vec<(Subject, String)>,
    /// Peers that are not installed.
    absent: Vec<Subject>,
}

/// One attack on one subject; `None` is the witness alone.
#[derive(Clone, Copy)]
struct Case {
    subject: Subject,
    attack: Option<&'static Attack>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.attack.map_or(IDLE, |attack| attack.name))
    }
}

/// A subject, started for an attack.
struct Attacked {
    name: &'static str,
    started: Started,
}

impl instrument::Subject for Attacked {
    fn name(&self) -> &str {
        self.name
    }
}

impl Hostile {
    fn all_subjects(&self) -> Vec<Subject> {
        let own = match self.options.is_foreign() {
            true => Subject::Foreign,
            false => Subject::Own,
        };
        let peers = self.options.peers.iter().map(|peer| Subject::Peer(*peer));
        std::iter::once(own).chain(peers).collect()
    }
}

impl Instrument for Hostile {
    const NAME: &'static str = "hostile";
    const PLACEMENTS: &'static [Placement] = &[];
    const IS_PLACED: bool = false;
    const IS_SINGLE: bool = true;

    type Case = Case;
    type Subject = Attacked;

    fn common(&self) -> &Common {
        &self.options.common
    }

    fn header(&self, _site: &Site) -> Vec<String> {
        let HostileOptions {
            after_seconds,
            scale,
            limit_seconds,
            ..
        } = self.options;
        vec![format!(
            "Witness: one operation at a time of each kind, beside each attack and {after_seconds} s \
             after it; waits in ms, the worst and below it the 99th percentile; sizes × {scale}, at \
             most {limit_seconds} s an attack"
        )]
    }

    fn settings(&self, _site: &Site) -> Value {
        let options = &self.options;
        let attacks = options.attacks();
        let present = self.all_subjects().into_iter();
        let present = present.filter(|subject| !self.absent.contains(subject));
        json!({
            "scale": options.scale,
            "consumers": options.consumers,
            "limit_seconds": options.limit_seconds,
            "after_seconds": options.after_seconds,
            "patience_seconds": options.patience_seconds,
            "attacks": attacks.iter().map(|attack| attack.name).collect::<Vec<_>>(),
            "subjects": present.map(Subject::name).collect::<Vec<_>>(),
        })
    }

    fn testbed(&self) -> Testbed {
        let absent = self.absent.iter().map(|subject| subject.name().to_owned());
        Testbed {
            absent: absent.collect(),
            ..Testbed::default()
        }
    }

    fn cases(&self) -> Result<Vec<Case>, BenchError> {
        let mut cases = Vec::new();
        for subject in self.all_subjects() {
            let attacks = self.options.attacks().into_iter().map(Some);
            let all = std::iter::once(None).chain(attacks);
            cases.extend(all.map(|attack| Case { subject, attack }));
        }
        Ok(cases)
    }

    /// Each attack has a node of its own, so that memory is comparable.
    fn subjects(&mut self, stage: &Stage<'_>, case: &Case) -> Result<Vec<Attacked>, BenchError> {
        let (subject, site) = (case.subject, stage.site);
        if self.absent.contains(&subject) {
            return Ok(Vec::new());
        }
        let name = subject.name();
        let directory = site.directory.path().join(name).join(case.to_string());
        fs::create_dir_all(&directory)?;
        let setting = case
            .attack
            .map_or(Setting::Default, |attack| attack.setting);
        let starting = Starting {
            options: &self.options,
            executable: &site.executable,
            directory: &directory,
            network: &site.network,
        };
        let Some(started) = subject.start(setting, &starting)? else {
            site.say(&format!("\n{name}: absent"));
            self.absent.push(subject);
            return Ok(Vec::new());
        };
        let lacking = case.attack.and_then(|attack| attack.lacks(&started.ways));
        if let Some(lacking) = lacking {
            let words = format!("{case}: left out: it needs {lacking}");
            self.left_out.push((subject, words));
            return Ok(Vec::new());
        }
        Ok(vec![Attacked { name, started }])
    }

    fn round(&mut self, stage: &Stage<'_>, case: &Case, attacked: &mut Attacked) -> Round {
        let attack = case.attack.map(|attack| attack.name);
        let executable = &stage.site.executable;
        let outcome = round::run(&mut attacked.started, attack, executable, &self.options)?;
        if attack.is_none() && !outcome.without.is_empty() {
            let without = outcome.without.join("; ");
            self.without.push((case.subject, without));
        }
        outcome.into_round()
    }

    fn title(&self, section: &Section<Case>) -> String {
        section.case.subject.name().to_owned()
    }

    fn table(&self, sections: &[&Section<Case>]) -> Option<Vec<Vec<String>>> {
        Some(present::attacks(sections))
    }

    fn below(&self, _site: &Site, sections: &[&Section<Case>]) -> Vec<String> {
        let mut lines = Vec::new();
        for section in sections {
            let words = section.own().and_then(Series::words);
            lines.extend(words.map(|words| format!("{}: {words}", section.case)));
        }
        let subject = sections.first().map(|section| section.case.subject);
        let of = |(whose, _): &&(Subject, String)| Some(*whose) == subject;
        lines.extend(
            self.left_out
                .iter()
                .filter(of)
                .map(|(_, words)| words.clone()),
        );
        let without = self.without.iter().filter(of);
        lines.extend(without.map(|(_, what)| format!("The witness lacked {what}")));
        lines
    }
}
