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
             has an error the keys that were read before hold. A relative path begins at the node's directory.",
        )
        .required()
        .environment(),
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
