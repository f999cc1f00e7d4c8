//! The frame of all instruments: options, rounds in turn, tables, goals, the results file.
//!
//! ```text
//!  Instrument ──subjects, round──▶ run ──figures──▶ Section ─┬─ table    columns as data
//!   (a driver and one table)        │                        ├─ goals    judged once: Verdict
//!                                  Site, Stage               └─ rows     of the results file
//! ```
//!
//! The frame decides for all instruments: a run without rows is not valid. Results are kept, printed and written if a
//! late round fails or the user ends the run. `driver_bound` is a boolean of a subject's summary, by one rule
//! ([`section::Limit`]). Goals are defined by the instrument, judged here, and stored in the results file as verdicts,
//! which terminal and page only draw.
//!
//! **A new instrument** is an implementation of [`instrument::Instrument`]:
//!
//! 1. Its options are a struct with `common: Common` and its own ones; `fn on` takes the host and refuses
//!    invalid options ([`options::require`]). The common ones are [`arguments::CommonOptions`] and
//!    [`arguments::ServerOptions`], flattened into it; `RoutersOptions` and `BrokersOptions` have the latter.
//! 2. `Case` is the name of a row of the results file; `cases` are those to measure (or
//!    `sections`, if not every case is for every placement).
//! 3. `start` starts the processes of the run, `testbed` describes them, `subjects` lists those that take turns in a
//!    section and moves them to `stage.cores`. The first is the main subject; `crosstie` and `floor` are
//!    [`section::OWN`] and [`section::FLOOR`].
//! 4. `round` measures one subject once and returns [`crate::figures::Figures`] by name (`a.b` is
//!    nested), or a [`crate::figures::Fault`]; a `String` becomes one with `?`. A fault with an `end`
//!    ends the run.
//! 5. `columns` is the table: [`table::Column::median`], `spread`, `rate`, `over_floor` and so on, by
//!    name of figure. If rows are not subjects, `table` gives its own rows; `title` puts sections
//!    into one table. `below` are the lines that explain it. Cases that a round measures in addition are
//!    `beside`: sections that are written and judged like any other.
//! 6. `OVER_FLOOR` and `comparisons` are figures of the summary alone (ratios to the floor, the document's
//!    values); `left_out` gives the cases that a machine is too small for; `limit` defines a driver-bound rate; `goals`
//!    are
//!    our own goals.
//! 7. `run(instrument)` is all that is left of the function that the command line calls.
//!
//! Nothing here knows an instrument by its name; a peculiarity is a default that an instrument overrides.

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
pub(crate) use options::{Common, chosen, require, require_within};
pub(crate) use section::{FLOOR, Limit, OWN, Section};
pub(crate) use site::{Site, Stage, Threads};
pub(crate) use table::Column;
pub(crate) use testbed::{PeerState, Testbed};
pub(crate) use window::{Ahead, Drive};
#[cfg(test)]
pub(crate) use {
    arguments::{check_cases, check_refusal, usual},
    goals::judge,
};
