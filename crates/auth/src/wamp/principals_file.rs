//! Principals that stand in a file of their own.

use super::Method;

/// Where the principals of a method are, who are to be put into [`Methods`](super::Methods) by whoever reads files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrincipalsFile {
    pub method: Method,
    pub path: String,
}
