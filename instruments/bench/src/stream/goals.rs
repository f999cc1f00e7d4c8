//! The figures that this project set itself for streams, and what a floor must reach to count.

use super::case::{Case, Mode, Test};
use super::netperf::NAME;
use crate::frame::{Bound, Goal};
use crate::machine::Placement;
use crate::subject::Socket;

pub(super) fn goals(case: &Case) -> Vec<Goal> {
    let figure = figure(case.test);
    let floor = |least| Goal::over_floor("÷ floor", figure, Bound::AtLeast(least));
    match (case.test, case.mode) {
        (Test::RequestResponse, _) => {
            let netserver = Bound::AtLeast(0.88);
            vec![
                floor(0.97),
                Goal::over("÷ netserver", NAME, figure, netserver),
            ]
        }
        (Test::ConnectRequestResponse, _) => vec![floor(0.97)],
        (Test::Stream, Mode::Echo) => vec![floor(0.95)],
        _ => Vec::new(),
    }
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
