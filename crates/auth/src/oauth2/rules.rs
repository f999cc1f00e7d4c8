//! The requirements on tokens.

use std::collections::BTreeMap;

use crate::wamp::jwt::Algorithm;

/// The requirements on a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub algorithms: Vec<Algorithm>,
    /// The name of this broker in `aud`, and before the dot of its scopes. If it is empty, every token and scope is for
    /// this broker.
    pub resource_server_id: String,
    /// The claim with further scopes.
    pub additional_scopes_key: Option<String>,
    /// The scopes that others stand for.
    pub scope_aliases: BTreeMap<String, Vec<String>>,
    /// The key of tokens that name none.
    pub default_key: Option<String>,
}
