//! JSON Web Tokens: every key that is taken. Long and flat.

use super::auth::DEFAULT_ROLE;
use super::form::{Fallback, Kind, Rule, TYPE, Table, Tagged, Words, integer, key, list_not_empty};

pub(super) static JWT: Tagged = Tagged {
    path: "auth.jwt.type",
    name: "authentication by token",
    variants: &[("static", &JWT_STATIC)],
};

static JWT_STATIC: Table = Table {
    path: "auth.jwt[static]",
    name: "authentication by token",
    keys: &[
        TYPE,
        key(
            "jwks_file",
            Kind::Text(Rule::Path),
            "File with the issuer's public keys, a JSON Web Key Set. The router reloads a changed file within three \
             seconds. While the file has an error, the previous keys stay in force. A relative path starts at the \
             node's directory. Give either this key or `jwks_url`.",
        )
        .environment(),
        key(
            "jwks_url",
            Kind::Text(Rule::HttpUrl),
            "URL of the issuer's key set, `https://…` or `http://…`. The router fetches it at start, and again after \
             the server's `max-age`. If a fetch fails, the previous keys stay in force. Redirections are not \
             followed.",
        )
        .environment(),
        key(
            "jwks_ca_certificates",
            list_not_empty(&Kind::Text(Rule::Path)),
            "PEM files of certificate authorities trusted for the key server, beside those of the system.",
        ),
        key(
            "jwks_refresh_s_min",
            integer(1, 86_400),
            "Minimum time between two fetches of the key set, in seconds. It applies whatever the server's `max-age` \
             or a token's key id says.",
        )
        .fallback(Fallback::Integer(30)),
        key(
            "jwks_refresh_s_max",
            integer(1, 604_800),
            "Maximum age of the fetched key set, in seconds, also if the server sends no `max-age`.",
        )
        .fallback(Fallback::Integer(3_600)),
        key(
            "jwks_timeout_ms",
            integer(1, 60_000),
            "Maximum time for the key server's whole answer, in milliseconds.",
        )
        .fallback(Fallback::Integer(5_000)),
        key(
            "jwks_bytes_max",
            integer(1, 16 << 20),
            "Maximum size of the key server's answer, in bytes. A longer one is an error.",
        )
        .fallback(Fallback::Integer(262_144)),
        key(
            "algorithms",
            list_not_empty(&Kind::OneOf(&ALGORITHMS)),
            "Accepted signature algorithms.",
        )
        .otherwise("`RS256`, `ES256`, `EdDSA`"),
        key(
            "issuer",
            Kind::Text(Rule::NotEmpty),
            "Required value of the claim `iss`.",
        )
        .otherwise("any"),
        key(
            "audience",
            Kind::Text(Rule::NotEmpty),
            "Required value of the claim `aud`, or of one of its items.",
        )
        .otherwise("any, or none"),
        key(
            "authid_claim",
            Kind::Text(Rule::NotEmpty),
            "Claim that holds the authid.",
        )
        .fallback(Fallback::Text("sub")),
        key(
            "role_claim",
            Kind::Text(Rule::NotEmpty),
            "Claim that holds the role, which must not be `trusted`.",
        )
        .fallback(Fallback::Text("role")),
        DEFAULT_ROLE,
        key(
            "clock_skew",
            integer(0, 600),
            "Tolerated difference between the issuer's clock and the router's, in seconds.",
        )
        .fallback(Fallback::Integer(60)),
    ],
};

static ALGORITHMS: Words = Words {
    path: "auth.jwt[static].algorithms[]",
    words: &[
        "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
    ],
};
