//! The frame of all instruments: options, rounds in turn, tables, goals, the results file.
//!
//! ```text
//!  Instrument ──subjects, round──▶ run ──figures──▶ Section ─┬─ table    columns as data
//!   (a driver and one table)        │                        ├─ goals    judged once: Verdict
//!                                  Site, Stage               └─ rows     of the results file
//! ```
//!
//! What is decided here, for all of them: a run without rows is not valid; what was measured is kept,
//! printed and written when a late round fails or the user ends the run; `driver_bound` is a boolean
//! of a subject's sum, by one rule ([`section::Limit`]); goals are said by the instrument, judged here,
//! and stand in the results file as verdicts, which terminal and page only draw.
//!
//! **A new instrument** is an implementation of [`instrument::Instrument`]:
//!
//! 1. Its options are a struct with `common: Common` and what is its own; `fn on` takes the host and refuses
//!    what makes no sense ([`options::require`]). The common ones are [`arguments::CommonOptions`] and
//!    [`arguments::ServerOptions`], flattened into it; `RoutersOptions` and `BrokersOptions` have the latter.
//! 2. `Case` is what a row of the results file is called by; `cases` are those to measure (or
//!    `sections`, where not every case is for every placement).
//! 3. `start` starts what stays up for the run, `testbed` tells of it, `subjects` says who takes turns in a section and moves
//!    them to `stage.cores`. The first is the one that the run is about; `crosstie` and `floor` are
//!    [`section::OWN`] and [`section::FLOOR`].
//! 4. `round` measures one subject once and returns [`crate::figures::Figures`] by name (`a.b` is
//!    nested), or a [`crate::figures::Fault`]; a `String` becomes one with `?`. A fault with an `end`
//!    ends the run.
//! 5. `columns` is the table: [`table::Column::median`], `spread`, `rate`, `over_floor` and so on, by
//!    name of figure. Where rows are no subjects, `table` gives its own rows; `title` puts sections
//!    into one table. `below` are the lines that explain it. What a round measures of other cases is
//!    `beside`: sections that are written and judged like any other.
//! 6. `OVER_FLOOR` and `comparisons` are figures of the sum alone (what is over the floor, what the document
//!    has); `left_out` says for which cases a machine is too small; `limit` says what a driver-bound rate is; `goals` what ours is to reach.
//! 7. `run(instrument)` is all that is left of the function that the command line calls.
//!
//! Nothing here knows an instrument by its name; what is peculiar to one is a default that it overrides.

pub(crate) mod arguments;
mod busy;
pub(crate) mod goals;
pub(crate) mod instrument;
pub(crate) mod options;
pub(crate) mod run;
pub(crate) mod section;
pub(crate) mod site;
pub(crate) mod table;
pub(crate) mod testbed;
pub(crate) mod window;

pub(crate) use arguments::{
    AsUsual, CommonOptions, FileOptions, Host, RoundOptions, Server, ServerOptions, Usual, duration,
};
pub(crate) use goals::{Bound, Goal, Verdict, crowded};
pub(crate) use instrument::{Instrument, Subject, Wanted};
pub(crate) use options::{Common, require};
pub(crate) use section::{FLOOR, Limit, OWN, Section};
pub(crate) use site::{Site, Stage, Threads};
pub(crate) use table::Column;
pub(crate) use testbed::{PeerState, Testbed};
pub(crate) use window::{Ahead, Drive};
#[cfg(test)]
pub(crate) use {
    arguments::{check_cases, usual},
    goals::judge,
};
