//! The options of `bench join`.

use crate::error::BenchError;
use crate::frame::{AsUsual, Common, CommonOptions, Host, chosen, require_within};
use crate::peer::Peer;

use super::case::Case;

/// Start a node that accepts every method of authentication, and clients that join and leave.
#[derive(Clone, Debug, clap::Args)]
pub struct JoinOptions {
    #[arg(skip)]
    pub(super) common: Common,
    /// anonymous, ticket, wampcra, scram or cryptosign, ticket-guessers (the same beside clients that try wrong
    /// tickets), wampcra-hashed (beside clients that log in by tickets of which the router stores Argon2 hashes) or
    /// anonymous-observed (beside a subscriber of wamp.session.on_join); may be repeated [default: all].
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<Case>,
    /// Clients that join one session after the other.
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub(super) outstanding: usize,
    /// Clients that try wrong tickets, in cases with guessers.
    #[arg(long, default_value_t = 24, value_name = "N")]
    pub(super) guessers: usize,
    /// Clients that log in by hashed tickets, in cases with them.
    #[arg(long, default_value_t = 4, value_name = "N")]
    pub(super) hashed: usize,
    /// crossbar: start, measure and stop a Crossbar.io found on PATH; may be repeated.
    #[arg(long = "peer", value_name = "PEER")]
    pub(super) peers: Vec<Peer>,
    #[command(flatten)]
    usual: CommonOptions<AsUsual>,
}

impl JoinOptions {
    pub(super) fn on(mut self, host: Host) -> Result<Self, BenchError> {
        self.common = self.usual.own(host)?;
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), BenchError> {
        require_within("--outstanding", &self.outstanding, 1..=1_000)?;
        require_within("--guessers", &self.guessers, 1..=1_000)?;
        require_within("--hashed", &self.hashed, 1..=1_000)
    }

    pub(super) fn definite_cases(&self) -> Vec<Case> {
        chosen(&self.cases, &Case::ALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::check_refusal;

    #[test]
    fn invalid_options_are_refused() {
        let check = |change, expected| check_refusal(JoinOptions::check, change, expected);
        check(|_| {}, None);
        check(|o| o.outstanding = 0, Some("--outstanding is 1 to 1,000"));
        check(|o| o.guessers = 1_001, Some("--guessers is 1 to 1,000"));
        check(|o| o.hashed = 0, Some("--hashed is 1 to 1,000"));
    }
}
