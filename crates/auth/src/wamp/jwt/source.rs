//! The URL at which an issuer publishes its keys.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A URL, and the options of its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysUrl {
    /// `https://…`, or `http://…`.
    pub url: String,
    /// Files of certificate authorities that are trusted for the server, besides the system's.
    pub ca_certificates: Vec<String>,
    /// The keys are fetched again after the time that the server's response allows, bounded by this range. A token with
    /// an unknown key triggers fetches at the rate of the lower bound.
    pub refresh: RangeInclusive<Duration>,
    /// For one fetch, from the name's resolution to the last byte.
    pub timeout: Duration,
    pub bytes_max: usize,
}
