//! Principals in a file of their own.

use super::Method;

/// The file of a method's principals. The configuration's loader reads it into [`Methods`](super::Methods).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrincipalsFile {
    pub method: Method,
    pub path: String,
}
