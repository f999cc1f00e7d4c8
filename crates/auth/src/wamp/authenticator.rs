//! Procedures that authenticate clients (dynamic authenticators).

use std::sync::Arc;
use std::time::Duration;

use super::Provider;

/// A procedure that authenticates clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Authenticator {
    pub procedure: String,
    /// The `authprovider` of the sessions that it admits.
    pub authprovider: Provider,
    /// The realm in which it is called; `None` means the realm that the client asks for.
    pub realm: Option<String>,
    /// The role in which the router calls it.
    pub role: Arc<str>,
    /// The role of clients for whom its answer names none.
    pub default_role: Option<Arc<str>>,
    /// The time limit of a call.
    pub timeout: Duration,
}
