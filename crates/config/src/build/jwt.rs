//! Whose tokens let sessions in.

use std::sync::Arc;

use crosstie_auth::wamp::Jwt;
use crosstie_auth::wamp::jwt::{Algorithm, Rules};

use super::Builder;
use super::auth::shared;
use crate::problem::Problem;
use crate::view::View;

impl Builder<'_> {
    /// The keys are read with the file that has them.
    pub(super) fn jwt(&mut self, jwt: View<'_>) -> Jwt {
        let named = jwt.texts("algorithms").filter_map(Algorithm::parse);
        let mut algorithms: Vec<_> = named.collect();
        if algorithms.is_empty() {
            algorithms = vec![Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa];
        }
        if jwt.text("issuer").is_none() && jwt.text("audience").is_none() {
            let message = "neither \"issuer\" nor \"audience\" is given: whatever the keys have signed lets in, \
                           also what was made for others";
            self.problems
                .push(Problem::warning(jwt.span, message.to_owned()));
        }
        let text = |key| jwt.text(key).map(str::to_owned);
        Jwt {
            keys: Arc::default(),
            rules: Arc::new(Rules {
                algorithms,
                issuer: text("issuer"),
                audience: text("audience"),
                authid_claim: text("authid_claim").unwrap_or_default(),
                role_claim: text("role_claim").unwrap_or_default(),
                default_role: shared(jwt, "default-role"),
                clock_skew_s: jwt
                    .integer("clock_skew")
                    .and_then(|s| u64::try_from(s).ok())
                    .unwrap_or_default(),
            }),
        }
    }
}
