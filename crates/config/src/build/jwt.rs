//! Authentication by JSON Web Tokens.

use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::wamp::Jwt;
use crosstie_auth::wamp::jwt::{Algorithm, KeysUrl, Rules};

use super::auth::shared;
use super::{Builder, bound};
use crate::plain::{Plain, seconds};
use crate::problem::Problem;
use crate::tree::quoted;
use crate::view::View;

impl Builder<'_> {
    /// The keys are read later, with their file.
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
            url: self.keys_url(jwt).map(Arc::new),
            keys: Arc::default(),
            rules: Arc::new(Rules {
                algorithms,
                issuer: text("issuer"),
                audience: text("audience"),
                authid_claim: text("authid_claim").unwrap_or_default(),
                role_claim: text("role_claim").unwrap_or_default(),
                default_role: shared(jwt, "default-role"),
                clock_skew_s: u64::read(jwt, "clock_skew"),
            }),
        }
    }

    /// The URL of the keys, if they do not come from a file.
    pub(super) fn keys_url(&mut self, jwt: View<'_>) -> Option<KeysUrl> {
        if jwt.text("jwks_file").is_some() == jwt.text("jwks_url").is_some() {
            let name = jwt.text("type").filter(|kind| *kind != "static");
            let name = name.unwrap_or("jwt");
            let message = format!("{name} needs \"jwks_file\" or \"jwks_url\", and not both");
            self.problems.push(Problem::error(jwt.span, message));
        }
        const OF_A_URL: [&str; 5] = [
            "jwks_ca_certificates",
            "jwks_refresh_s_min",
            "jwks_refresh_s_max",
            "jwks_timeout_ms",
            "jwks_bytes_max",
        ];
        let Some(url) = jwt.text("jwks_url") else {
            for key in OF_A_URL {
                if jwt.given(key).is_some() {
                    let message = format!("{} has no effect without \"jwks_url\"", quoted(key));
                    self.problems
                        .push(Problem::warning(jwt.span_of(key), message));
                }
            }
            return None;
        };
        if url.starts_with("http://") {
            let message = "whoever is between this node and the keys' server can make tokens of their own: https:// \
                           is meant for that";
            self.warn(jwt, "jwks_url", message);
        }
        let (min, max) = (
            seconds(jwt, "jwks_refresh_s_min"),
            seconds(jwt, "jwks_refresh_s_max"),
        );
        if min > max {
            let message = "\"jwks_refresh_s_min\" must not be more than \"jwks_refresh_s_max\"";
            self.error(jwt, "jwks_refresh_s_min", message);
        }
        let certificates = jwt.texts("jwks_ca_certificates").map(str::to_owned);
        Some(KeysUrl {
            url: url.to_owned(),
            ca_certificates: certificates.collect(),
            refresh: min..=max,
            timeout: Duration::read(jwt, "jwks_timeout_ms"),
            bytes_max: bound(jwt, "jwks_bytes_max"),
        })
    }
}
