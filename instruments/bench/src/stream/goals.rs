//! The project's goals for streams, and the minimum of a floor that counts.

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

/// The floor's results on an otherwise idle machine of one kind, per second.
pub(super) mod reference {
    use super::*;

    /// The processor of the reference measurements. On another one they are meaningless.
    pub(crate) const CPU: &str = crate::floor::ends::reference::CPU;

    /// A floor below this share of the reference is suspect.
    pub(crate) const TOLERANCE: f64 = 0.85;

    /// Transactions of one byte; `None` without a reference.
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
