//! Procedures that are asked who somebody is.

use std::sync::Arc;
use std::time::Duration;

use super::Provider;

/// A procedure that says who somebody is.
#[derive(Clone, Debug, PartialEq)]
pub struct Authenticator {
    pub procedure: String,
    /// What it is to those whom it lets in.
    pub authprovider: Provider,
    /// Where it is called; in the realm that the client asks for where not said.
    pub realm: Option<String>,
    /// The role of whoever calls it.
    pub role: Arc<str>,
    /// The role of those for whom it names none.
    pub default_role: Option<Arc<str>>,
    /// How long it may take.
    pub timeout: Duration,
}
