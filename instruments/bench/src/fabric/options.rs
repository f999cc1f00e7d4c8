//! The options of `bench fabric`.

use std::path::PathBuf;

use super::case::Case;
use crate::error::BenchError;
use crate::frame::{AsUsual, Common, CommonOptions, Host, chosen, require, require_within};
use crate::peer::nats;

/// Start a NATS server and nodes: one without a fabric, one alone with one, two that share a realm, and two with a
/// replicated vhost.
#[derive(Clone, Debug, clap::Args)]
pub struct FabricOptions {
    #[arg(skip)]
    pub(super) common: Common,
    /// call (in sequence), calls (many at once), events, subscribe or register (in sequence), confirm (in sequence),
    /// confirms (many at once); may be repeated [default: all].
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<Case>,
    /// Calls in flight, or unconfirmed publications, in cases with many.
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub(super) outstanding: usize,
    /// Events in flight between the publisher and its subscriber.
    #[arg(long, default_value_t = 512, value_name = "N")]
    pub(super) events: usize,
    /// Bytes of text in each call, event and publication, besides its number.
    #[arg(long = "payload", default_value_t = 0, value_name = "BYTES")]
    pub(super) payload_bytes: usize,
    /// The program [default: nats-server on PATH].
    #[arg(long, value_name = "FILE")]
    nats_server: Option<PathBuf>,
    #[command(flatten)]
    usual: CommonOptions<AsUsual>,
}

impl FabricOptions {
    pub(super) fn on(mut self, host: Host) -> Result<Self, BenchError> {
        self.common = self.usual.own(host)?;
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), BenchError> {
        require_within("--outstanding", &self.outstanding, 1..=65_536)?;
        require_within("--events", &self.events, 1..=65_536)?;
        require(self.payload_bytes <= 1 << 20, "--payload is at most 1 MiB")
    }

    pub(super) fn definite_cases(&self) -> Vec<Case> {
        chosen(&self.cases, Case::ALL)
    }

    pub(super) fn program(&self) -> Result<PathBuf, BenchError> {
        nats::program(self.nats_server.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::check_refusal;

    #[test]
    fn invalid_options_are_refused() {
        let check = |change, expected| check_refusal(FabricOptions::check, change, expected);
        check(|_| {}, None);
        check(|o| o.outstanding = 0, Some("--outstanding is 1 to 65,536"));
        check(|o| o.events = 0, Some("--events is 1 to 65,536"));
        check(
            |o| o.payload_bytes = 1 << 21,
            Some("--payload is at most 1 MiB"),
        );
    }
}
