//! The figures that this project set itself for streams, and what a floor must reach to count.

use super::case::{Case, Mode, Test};
use crate::figures::{DRIVER_BOUND, Goal, Series, unfit, verdict};
use crate::machine::placement::Placement;
use crate::subject::case::Socket;

/// Lines about the goals of a case.
pub(super) fn verdicts(
    case: &Case,
    placement: Placement,
    own: &Series,
    others: &[Series],
    is_driver_bound: bool,
) -> Vec<String> {
    // Where the scheduler places, a figure flips with the machine's load: no goal's basis.
    if placement == Placement::Free {
        return Vec::new();
    }
    let figure = figure(case.test);
    let over = |subject: &str| {
        let other = others.iter().find(|other| other.subject == subject)?;
        Some(own.over(other, figure)?.median)
    };
    let goals: &[(&str, &str, f64)] = match (case.test, case.mode) {
        (Test::RequestResponse, _) => &[
            ("÷ floor", "floor", 0.97),
            ("÷ netserver", "netserver", 0.88),
        ],
        (Test::ConnectRequestResponse, _) => &[("÷ floor", "floor", 0.97)],
        (Test::Stream, Mode::Echo) => &[("÷ floor", "floor", 0.95)],
        _ => &[],
    };
    let verdicts = goals.iter().filter_map(|(what, subject, goal)| {
        let goal = Goal::AtLeast(*goal);
        let other = others.iter().find(|other| other.subject == *subject);
        let unfit = unfit([own].into_iter().chain(other));
        let unfit = unfit.or_else(|| is_driver_bound.then_some(DRIVER_BOUND));
        verdict(what, goal, over(subject), unfit)
    });
    verdicts.collect()
}

/// The figure that a test is about.
pub(super) fn figure(test: Test) -> &'static str {
    match test.is_transactional() {
        true => "transactions_per_s",
        false => "megabits_per_s",
    }
}

/// What the floor reaches on an otherwise idle machine of one kind, per second.
pub(super) mod reference {
    use super::*;

    /// The processor that the references were measured on. On another they say nothing.
    pub(crate) const CPU: &str = crate::floor::ends::reference::CPU;

    /// A floor below this share of the reference is suspect.
    pub(crate) const TOLERANCE: f64 = 0.85;

    /// Transactions of one byte; `None` where there is no reference.
    pub(crate) fn per_s(case: &Case, placement: Placement) -> Option<f64> {
        match (case.test, case.socket, placement) {
            (_, Socket::Unix, _) | (.., Placement::Free) => None,
            (Test::RequestResponse, _, Placement::SameCore) => Some(122_883.0),
            (Test::RequestResponse, _, Placement::Split) => Some(19_732.0),
            (Test::ConnectRequestResponse, _, Placement::SameCore) => Some(28_976.0),
            (Test::ConnectRequestResponse, _, Placement::Split) => Some(8_771.0),
            (Test::Stream | Test::Maerts, ..) => None,
        }
    }
}
