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
            "The issuer's public keys, a JSON Web Key Set. It is read again within three seconds of a change; while it \
             has an error the keys that were read before hold. A relative path begins at the node's directory. Either \
             this or `jwks_url` is given.",
        )
        .environment(),
        key(
            "jwks_url",
            Kind::Text(Rule::HttpUrl),
            "Where the issuer publishes its keys, `https://…` or `http://…`. They are fetched when the node starts and \
             again after the time that the server says (`max-age`); while they cannot be had, those that were fetched \
             before hold. Redirections are not followed.",
        )
        .environment(),
        key(
            "jwks_ca_certificates",
            list_not_empty(&Kind::Text(Rule::Path)),
            "PEM files with those who may sign the certificate of the keys' server, beside those that the system trusts.",
        ),
        key(
            "jwks_refresh_s_min",
            integer(1, 86_400),
            "For so long fetched keys are not fetched again, whatever the server says and whatever keys tokens name.",
        )
        .fallback(Fallback::Integer(30)),
        key(
            "jwks_refresh_s_max",
            integer(1, 604_800),
            "After so long they are fetched again, whatever the server says; also if it says nothing.",
        )
        .fallback(Fallback::Integer(3_600)),
        key(
            "jwks_timeout_ms",
            integer(1, 60_000),
            "So long the keys' server has for its whole answer.",
        )
        .fallback(Fallback::Integer(5_000)),
        key(
            "jwks_bytes_max",
            integer(1, 16 << 20),
            "The longest answer of the keys' server: beyond, it is an error.",
        )
        .fallback(Fallback::Integer(262_144)),
        key(
            "algorithms",
            list_not_empty(&Kind::OneOf(&ALGORITHMS)),
            "The algorithms of signatures that are taken.",
        )
        .otherwise("`RS256`, `ES256`, `EdDSA`"),
        key(
            "issuer",
            Kind::Text(Rule::NotEmpty),
            "What a token has to have as `iss`.",
        )
        .otherwise("any"),
        key(
            "audience",
            Kind::Text(Rule::NotEmpty),
            "What a token has to have as `aud`, or among several.",
        )
        .otherwise("any, or none"),
        key(
            "authid_claim",
            Kind::Text(Rule::NotEmpty),
            "The claim that is the authid.",
        )
        .fallback(Fallback::Text("sub")),
        key(
            "role_claim",
            Kind::Text(Rule::NotEmpty),
            "The claim that is the role, which must not be `trusted`.",
        )
        .fallback(Fallback::Text("role")),
        DEFAULT_ROLE,
        key(
            "clock_skew",
            integer(0, 600),
            "By how many seconds the issuer's clock may be another.",
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
