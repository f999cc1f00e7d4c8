//! What an instrument is: who is measured, what a round does, and which figures it is about.

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

/// A case, and where it is measured.
pub(crate) type Wanted<C> = (C, Option<Placement>);

/// One of those who take turns in a section.
pub(crate) trait Subject {
    /// `crosstie`, `floor`, a peer's name, or the URL that is measured.
    fn name(&self) -> &str;
}

/// One instrument, in the order in which the frame asks. Everything that has a default is for those
/// few that differ.
pub(crate) trait Instrument {
    /// Of the subcommand, and in the results file.
    const NAME: &'static str;
    /// Where measured, unless it is said; others run where the scheduler puts them, by intent.
    const PLACEMENTS: &'static [Placement] = &[Placement::SameCore, Placement::Split];
    const IS_PLACED: bool = true;
    /// There is one round, and the results file has no row for it beside its sum.
    const IS_SINGLE: bool = false;
    /// A round takes the time that is asked for, and not that of a number of operations.
    const IS_TIMED: bool = true;
    /// A subject whose round failed is not asked again in that section.
    const GIVES_UP: bool = false;
    /// Rounds print lines of their own, so that the tables come together, at the end.
    const SPEAKS: bool = false;
    /// Figures that a subject's sum has over the floor's.
    const OVER_FLOOR: &'static [&'static str] = &[];

    /// What is done: a name in the results file.
    type Case: Clone + fmt::Display;
    type Subject: Subject;

    fn common(&self) -> &Common;

    /// Starts what stays up for the whole run.
    fn start(&mut self, _site: &Site) -> Result<(), BenchError> {
        Ok(())
    }

    /// Who stays up, for the notes, the table and the settings.
    fn testbed(&self) -> Testbed {
        Testbed::default()
    }

    /// What is done to each subject, where a line says it.
    fn load(&self) -> Option<String> {
        None
    }

    /// `Load: …` and whatever else holds for all tables.
    fn header(&self, _site: &Site) -> Vec<String> {
        let load = self.load().map(|load| self.common().load(&load));
        load.into_iter().collect()
    }

    /// What was asked, beyond what is common.
    fn settings(&self, site: &Site) -> Value;

    fn cases(&self) -> Result<Vec<Self::Case>, BenchError>;

    /// All there is to measure; by default every case in every placement.
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

    /// Why a case has no figures on this machine, where it has none.
    fn left_out(&self, _case: &Self::Case) -> Option<String> {
        None
    }

    /// For how many threads cores are dealt out.
    fn threads(&self) -> Threads {
        Threads {
            server: 1,
            clients: 1,
        }
    }

    /// Beyond the time that is measured and the time before it.
    fn seconds_beside(&self) -> f64 {
        0.05
    }

    /// Those that take turns, on their cores: the one that the run is about, the floor, others.
    fn subjects(
        &mut self,
        stage: &Stage<'_>,
        case: &Self::Case,
    ) -> Result<Vec<Self::Subject>, BenchError>;

    /// Measures one of them once.
    fn round(&mut self, stage: &Stage<'_>, case: &Self::Case, subject: &mut Self::Subject)
    -> Round;

    /// Looks at the section as a whole: a floor that is suspect, words that only measuring gave.
    fn end(
        &mut self,
        _stage: &Stage<'_>,
        _section: &mut Section<Self::Case>,
        _subjects: Vec<Self::Subject>,
    ) {
    }

    /// Cases of their own that the same rounds have measured, for tables and results file.
    fn beside(&mut self, _section: &Section<Self::Case>) -> Vec<Section<Self::Case>> {
        Vec::new()
    }

    /// What may limit the rate in place of a subject; nothing where no rate is free.
    fn limit(&self, _section: &Section<Self::Case>, _series: &Series) -> Option<Limit> {
        None
    }

    /// Of a subject, what only all rounds together can say.
    fn comparisons(&self, _site: &Site, section: &Section<Self::Case>, series: &Series) -> Figures {
        section.over_floor(series, Self::OVER_FLOOR)
    }

    /// The table that a section stands in; several in a row with one title share a table.
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

    /// What our own subject is to reach here, on the plain loopback. `before` are the sections that
    /// were measured until now.
    fn goals(&self, _: &Section<Self::Case>, _before: &[Section<Self::Case>]) -> Vec<Goal> {
        Vec::new()
    }
}
