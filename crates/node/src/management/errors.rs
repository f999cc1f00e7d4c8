//! The errors of the management procedures, with Crossbar.io's URIs.

use crosstie_client::{ApplicationError, args};

/// Why a procedure fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) uri: &'static str,
    pub(crate) text: String,
}

macro_rules! refusals {
    ($($name:ident $uri:literal)*) => {$(
        pub(crate) fn $name(text: &str) -> Refusal {
            Refusal {
                uri: $uri,
                text: text.to_owned(),
            }
        }
    )*};
}

refusals! {
    already_running "crossbar.error.already_running"
    cannot_start "crossbar.error.cannot_start"
    invalid_argument "wamp.error.invalid_argument"
    invalid_configuration "crossbar.error.invalid_configuration"
    needs_restart "crosstie.error.needs_restart"
    no_backup "crosstie.error.no_backup"
    not_moved "crosstie.error.not_moved"
    not_recovered "crosstie.error.not_recovered"
    not_upgraded "crosstie.error.not_upgraded"
    not_stored "crosstie.error.not_stored"
    not_supported "crosstie.error.not_supported"
    read_only "crosstie.error.read_only"
    no_such_object "crossbar.error.no_such_object"
    no_such_worker "crossbar.error.no_such_worker"
    not_running "crossbar.error.not_running"
    worker_already_running "crossbar.error.worker_already_running"
}

/// The node is shutting down and starts nothing any more.
pub(crate) fn ending() -> Refusal {
    not_running("the node is shutting down")
}

impl From<Refusal> for ApplicationError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.uri, args![refusal.text])
    }
}
