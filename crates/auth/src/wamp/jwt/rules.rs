//! The requirements on tokens.

use std::sync::Arc;

use super::Algorithm;

/// The requirements on a token.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    pub algorithms: Vec<Algorithm>,
    pub issuer: Option<String>,
    pub audience: Option<String>,
    /// The claims that hold the authid and the role.
    pub authid_claim: String,
    pub role_claim: String,
    /// The role of tokens that name none.
    pub default_role: Option<Arc<str>>,
    /// Tolerated difference to the issuer's clock, in seconds.
    pub clock_skew_s: u64,
}
