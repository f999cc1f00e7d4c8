//! The options of `bench fabric`.

use std::path::PathBuf;

use super::case::Case;
use crate::error::BenchError;
use crate::frame::{AsUsual, Common, CommonOptions, Host, require};
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
        self.common = Common {
            placements: self.usual.placements.clone(),
            ..self.usual.rounds.common(host)?
        };
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), BenchError> {
        let in_flight = 1..=65_536;
        require(
            in_flight.contains(&self.outstanding),
            "--outstanding is 1 to 65,536",
        )?;
        require(in_flight.contains(&self.events), "--events is 1 to 65,536")?;
        require(self.payload_bytes <= 1 << 20, "--payload is at most 1 MiB")
    }

    pub(super) fn definite_cases(&self) -> Vec<Case> {
        match self.cases.is_empty() {
            true => Case::ALL.to_vec(),
            false => self.cases.clone(),
        }
    }

    pub(super) fn program(&self) -> Result<PathBuf, BenchError> {
        nats::program(self.nats_server.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::usual;

    #[test]
    fn options_that_make_no_sense_are_refused() {
        #[track_caller]
        fn check(change: fn(&mut FabricOptions), expected: Option<&str>) {
            let mut options = usual::<FabricOptions>();
            change(&mut options);
            let error = options.check().err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), expected);
        }
        check(|_| {}, None);
        check(|o| o.outstanding = 0, Some("--outstanding is 1 to 65,536"));
        check(|o| o.events = 0, Some("--events is 1 to 65,536"));
        check(
            |o| o.payload_bytes = 1 << 21,
            Some("--payload is at most 1 MiB"),
        );
    }
}
