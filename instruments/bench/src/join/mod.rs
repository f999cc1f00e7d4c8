//! `bench join`: the rate of joining sessions, by each method of authentication, and the delay that refused clients
//! cause for others.
//!
//! ```text
//!  joiners ──connect, HELLO … WELCOME, GOODBYE, close──▶ ┌────────┐
//!  guessers ──connect, HELLO, a wrong ticket, ABORT────▶ │ router │
//!  hashed ────like joiners, by tickets with hashes─────▶ │        │
//!  observer ◀── wamp.session.on_join ─────────────────── └────────┘
//! ```
//!
//! Ours and a peer run the same node directory.

mod case;
mod credentials;
pub(crate) mod driver;
mod nodes;
mod options;
mod round;

pub use options::JoinOptions;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::{Figures, Round, Series, unfit};
use crate::frame::{
    self, Bound, Column, Common, Goal, Host, Instrument, Limit, Section, Site, Stage, Testbed,
};
use crate::handshake::usage;
use crate::peer::Peer;
use crate::report::table::{number, thousands};

use case::{Beside, Case};
use nodes::{Node, Nodes};

const RATE: &str = "joins_per_s";
const SERVER_CPU: &str = "server_cpu_us_per_join";
const P99: &str = "join_p99_us";

/// Measures, prints to standard output, and writes the results file if requested.
pub fn join(options: JoinOptions, host: Host) -> Result<bool, BenchError> {
    frame::run::run(Join {
        options: options.on(host)?,
        nodes: Nodes::default(),
    })
}

struct Join {
    options: JoinOptions,
    nodes: Nodes,
}

impl Instrument for Join {
    const NAME: &'static str = "join";

    type Case = Case;
    type Subject = Node;

    fn common(&self) -> &Common {
        &self.options.common
    }

    fn start(&mut self, site: &Site) -> Result<(), BenchError> {
        self.nodes = Nodes::start(site, &self.options.peers)?;
        Ok(())
    }

    fn testbed(&self) -> Testbed {
        self.nodes.testbed()
    }

    fn load(&self) -> Option<String> {
        Some(format!(
            "Unix socket, RawSocket, MessagePack: connect, HELLO to WELCOME, GOODBYE, close; {} at a time",
            self.options.outstanding
        ))
    }

    fn settings(&self, _site: &Site) -> Value {
        json!({
            "outstanding": self.options.outstanding,
            "guessers": self.options.guessers,
            "hashed": self.options.hashed,
        })
    }

    fn cases(&self) -> Result<Vec<Case>, BenchError> {
        Ok(self.options.definite_cases())
    }

    fn subjects(&mut self, stage: &Stage<'_>, case: &Case) -> Result<Vec<Node>, BenchError> {
        self.nodes.on(&stage.cores.router, case.beside())
    }

    fn round(&mut self, stage: &Stage<'_>, case: &Case, node: &mut Node) -> Round {
        Ok(round::run(&self.options, stage, *case, node)?)
    }

    fn limit(&self, section: &Section<Case>, _: &Series) -> Option<Limit> {
        Some(usage::limit(section.placement))
    }

    fn comparisons(&self, _site: &Site, section: &Section<Case>, series: &Series) -> Figures {
        let over = |figure| section.over(series, Peer::Crossbar.name(), figure);
        let ratio = |figure| over(figure).map(|ratio| ratio.median);
        Figures::new()
            .with_known("joins_per_s_over_crossbar", ratio(RATE))
            .with_known("server_cpu_us_per_join_over_crossbar", ratio(SERVER_CPU))
    }

    fn columns(&self, case: &Case) -> Vec<Column> {
        let mut columns = vec![
            Column::rate("joins/s", RATE, thousands),
            Column::spread("server CPU µs", SERVER_CPU, number),
            Column::median("join p50 µs", "join_p50_us", number),
            Column::spread("p99 µs", P99, number),
            Column::median("max µs", "join_max_us", number),
            Column::over("rate ÷ crossbar", Peer::Crossbar.name(), RATE),
        ];
        match case.beside() {
            Beside::Nobody => {}
            Beside::Guessers => {
                columns.push(Column::median("wrong ones/s", "guesses_per_s", thousands));
            }
            Beside::Hashed => {
                columns.push(Column::median("hashed/s", "hashed_per_s", thousands));
            }
            Beside::Observer => {
                columns.push(Column::median("events/s", "events_per_s", thousands));
            }
        }
        columns
    }

    fn below(&self, _site: &Site, sections: &[&Section<Case>]) -> Vec<String> {
        sections.iter().flat_map(|one| usage::lines(one)).collect()
    }

    fn goals(&self, section: &Section<Case>, before: &[Section<Case>]) -> Vec<Goal> {
        let alone = before.iter().find(|other| {
            other.placement == section.placement && Some(other.case) == section.case.alone()
        });
        let ours = section.own().zip(alone.and_then(Section::own));
        let over = |figure| {
            let (own, alone) = ours?;
            Some(own.median(figure)? / alone.median(figure)?)
        };
        let unfit = ours.and_then(|(own, alone)| unfit([own, alone]));
        match section.case.beside() {
            Beside::Nobody => {
                let what = "joins/s ÷ crossbar";
                let peer = Peer::Crossbar.name();
                vec![Goal::over(what, peer, RATE, Bound::AtLeast(10.0))]
            }
            Beside::Guessers | Beside::Hashed => {
                let what = "p99 ÷ p99 without them";
                vec![Goal::computed(what, over(P99), Bound::AtMost(2.0)).unless(unfit)]
            }
            Beside::Observer => {
                let what = "joins/s ÷ joins/s unobserved";
                vec![Goal::computed(what, over(RATE), Bound::AtLeast(0.7)).unless(unfit)]
            }
        }
    }
}
