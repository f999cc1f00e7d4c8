//! The definition of an instrument: its subjects, its rounds, and its figures.

use std::fmt;

use serde_json::Value;

use super::goals::Goal;
use super::options::Common;
use super::section::{Limit, Section};
use super::site::{Site, Stage, Threads};
use super::table::Column;
use super::testbed::Testbed;
use crate::error::BenchError;
use crate::figures::{Figures, Round, Series};
use crate::machine::Placement;

/// A case and its placement.
pub(crate) type Wanted<C> = (C, Option<Placement>);

/// A subject that takes turns in a section.
pub(crate) trait Subject {
    /// `crosstie`, `floor`, a peer's name, or the measured URL.
    fn name(&self) -> &str;
}

/// One instrument, in the order of the frame's calls. Methods with a default are for the few that differ.
pub(crate) trait Instrument {
    /// The name of the subcommand, and in the results file.
    const NAME: &'static str;
    /// Default placements of measured runs; other instruments leave the choice to the scheduler on purpose.
    const PLACEMENTS: &'static [Placement] = &[Placement::SameCore, Placement::Split];
    const IS_PLACED: bool = true;
    /// There is one round, and the results file has no row for it besides its summary.
    const IS_SINGLE: bool = false;
    /// A round takes the given time, not that of a number of operations.
    const IS_TIMED: bool = true;
    /// A subject whose round failed has no further rounds in that section.
    const GIVES_UP: bool = false;
    /// Rounds print lines of their own, so the tables are printed together, at the end.
    const SPEAKS: bool = false;
    /// Figures that a subject's summary has over the floor's.
    const OVER_FLOOR: &'static [&'static str] = &[];

    /// The case: a name in the results file.
    type Case: Clone + fmt::Display;
    type Subject: Subject;

    fn common(&self) -> &Common;

    /// Starts the processes that stay up for the whole run.
    fn start(&mut self, _site: &Site) -> Result<(), BenchError> {
        Ok(())
    }

    /// These processes, for the notes, the table and the settings.
    fn testbed(&self) -> Testbed {
        Testbed::default()
    }

    /// The load of each subject, for a line that states it.
    fn load(&self) -> Option<String> {
        None
    }

    /// `Load: …` and everything else that holds for all tables.
    fn header(&self, _site: &Site) -> Vec<String> {
        let load = self.load().map(|load| self.common().load(&load));
        load.into_iter().collect()
    }

    /// The options, beyond the common ones.
    fn settings(&self, site: &Site) -> Value;

    fn cases(&self) -> Result<Vec<Self::Case>, BenchError>;

    /// All sections to measure; by default every case in every placement.
    fn sections(
        &self,
        placements: &[Option<Placement>],
    ) -> Result<Vec<Wanted<Self::Case>>, BenchError> {
        let cases = self.cases()?;
        let placed = placements.iter().flat_map(|placement| {
            let cases = cases.iter().cloned();
            cases.map(|case| (case, *placement))
        });
        Ok(placed.collect())
    }

    /// The reason why a case has no figures on this machine, if it has none.
    fn left_out(&self, _case: &Self::Case) -> Option<String> {
        None
    }

    /// The number of threads that need cores.
    fn threads(&self) -> Threads {
        Threads {
            server: 1,
            clients: 1,
        }
    }

    /// Time besides the measured time and the warm-up.
    fn seconds_beside(&self) -> f64 {
        0.05
    }

    /// The subjects that take turns, on their cores: the main subject, the floor, others.
    fn subjects(
        &mut self,
        stage: &Stage<'_>,
        case: &Self::Case,
    ) -> Result<Vec<Self::Subject>, BenchError>;

    /// Measures one of them once.
    fn round(&mut self, stage: &Stage<'_>, case: &Self::Case, subject: &mut Self::Subject)
    -> Round;

    /// Examines the section as a whole: a suspect floor, texts that only measuring gave.
    fn end(
        &mut self,
        _stage: &Stage<'_>,
        _section: &mut Section<Self::Case>,
        _subjects: Vec<Self::Subject>,
    ) {
    }

    /// Additional cases that the same rounds have measured, for tables and results file.
    fn beside(&mut self, _section: &Section<Self::Case>) -> Vec<Section<Self::Case>> {
        Vec::new()
    }

    /// Possible limits of the rate other than the subject; `None` if no rate is free.
    fn limit(&self, _section: &Section<Self::Case>, _series: &Series) -> Option<Limit> {
        None
    }

    /// A subject's figures that need all rounds together.
    fn comparisons(&self, _site: &Site, section: &Section<Self::Case>, series: &Series) -> Figures {
        section.over_floor(series, Self::OVER_FLOOR)
    }

    /// The title of a section's table; consecutive sections with one title share a table.
    fn title(&self, section: &Section<Self::Case>) -> String {
        section.title()
    }

    /// The columns after the subject's name.
    fn columns(&self, _case: &Self::Case) -> Vec<Column> {
        Vec::new()
    }

    /// Whether its subjects have a row each in the table of the columns.
    fn has_rows(&self, _section: &Section<Self::Case>) -> bool {
        true
    }

    /// Another table in place of that of the columns: heads, then rows.
    fn table(&self, _sections: &[&Section<Self::Case>]) -> Option<Vec<Vec<String>>> {
        None
    }

    /// Lines between title and table.
    fn above(&self, _site: &Site, _sections: &[&Section<Self::Case>]) -> Vec<String> {
        Vec::new()
    }

    /// Lines below the table.
    fn below(&self, _site: &Site, _sections: &[&Section<Self::Case>]) -> Vec<String> {
        Vec::new()
    }

    /// Our own subject's goals here, on the plain loopback. `before` are the sections measured until now.
    fn goals(&self, _: &Section<Self::Case>, _before: &[Section<Self::Case>]) -> Vec<Goal> {
        Vec::new()
    }
}
