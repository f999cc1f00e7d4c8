//! One page from results files: the subjects beside the floor, the peers and the source documents.
//!
//! ```text
//!  results file ─▶ frame ─▶ run ──────┐
//!  results file ─▶ frame ─▶ run ──────┼─▶ page: overview, a section for each run, provenance
//!  damaged file ─▶ Damage ────────────┘     │
//!                                           ├─ table   figures as rows of subjects
//!            instrument: names and meaning  └─ chart   figures as SVG
//!            of a bench's figures
//!            document: figures for comparison
//! ```
//!
//! Text in, text out: the page needs no other file and no script. The crate knows the benches by their JSON alone, so
//! that files of other versions and origins can be shown too; an unknown figure is shown in a plain table.

mod chart;
mod document;
mod frame;
mod instrument;
mod metric;
mod page;
mod run;

use frame::Frame;
use run::Run;

/// A results file that cannot be read: the place, and the expected content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub file: String,
    pub why: String,
}

/// Results to be rendered as a page.
#[derive(Default)]
pub struct Report {
    runs: Vec<Run>,
    damaged: Vec<Damage>,
}

impl Report {
    /// Adds one results file. A damaged one is kept as such: the page lists it too.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), Damage> {
        match Frame::read(text) {
            Ok(frame) => {
                self.runs.push(Run::new(file, frame));
                Ok(())
            }
            Err(why) => Err(self.add_damaged(file, why)),
        }
    }

    /// Adds a file that could not even be opened.
    pub fn add_damaged(&mut self, file: &str, why: impl Into<String>) -> Damage {
        let damage = Damage {
            file: file.to_owned(),
            why: why.into(),
        };
        self.damaged.push(damage.clone());
        damage
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The page, as HTML.
    pub fn page(mut self) -> String {
        let superseded = run::newest_first(&mut self.runs);
        page::render(&self.runs, &superseded, &self.damaged)
    }
}
