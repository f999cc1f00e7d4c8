//! What is asked of tokens.

use std::sync::Arc;

use super::Algorithm;

/// What a token has to say.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    pub algorithms: Vec<Algorithm>,
    pub issuer: Option<String>,
    pub audience: Option<String>,
    /// The claim that is the authid, and that which is the role.
    pub authid_claim: String,
    pub role_claim: String,
    /// The role of those whose token names none.
    pub default_role: Option<Arc<str>>,
    /// By how much the issuer's clock may be another.
    pub clock_skew_s: u64,
}
