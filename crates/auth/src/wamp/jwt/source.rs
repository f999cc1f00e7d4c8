//! Where an issuer publishes its keys, for whoever fetches them.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A URL, and how it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysUrl {
    /// `https://…`, or `http://…`.
    pub url: String,
    /// Files with those who may sign the server's certificate, beside those that the system trusts.
    pub ca_certificates: Vec<String>,
    /// The keys are fetched again after the time that the server says, but neither sooner nor later than this. A token
    /// with an unknown key has them fetched as often as the first says.
    pub refresh: RangeInclusive<Duration>,
    /// For one answer, from the name's resolution to the last byte.
    pub timeout: Duration,
    pub bytes_max: usize,
}
