//! Keys of authentication by JSON Web Token.

use super::auth::DEFAULT_ROLE;
use super::form::{Rule, TYPE, integer, list_not_empty, one_of, text};
use super::table::tables;

tables! {
    pub(super) tagged JWT("auth.jwt.type", "authentication by token") { "static" => JWT_STATIC }

    static JWT_STATIC("auth.jwt[static]", "authentication by token") {
        ..TYPE;
        ..JWKS_FILE, JWKS_URL, JWKS_CA_CERTIFICATES, JWKS_REFRESH_S_MIN, JWKS_REFRESH_S_MAX, JWKS_TIMEOUT_MS, JWKS_BYTES_MAX;
        "algorithms" = list_not_empty(&one_of(&ALGORITHMS)).otherwise("`RS256`, `ES256`, `EdDSA`"),
            "Accepted signature algorithms.";
        "issuer" = text(Rule::NotEmpty).otherwise("any"), "Required value of the claim `iss`.";
        "audience" = text(Rule::NotEmpty).otherwise("any, or none"),
            "Required value of the claim `aud`, or of one of its items.";
        "authid_claim" = text(Rule::NotEmpty).or_text("sub"), "Claim that holds the authid.";
        "role_claim" = text(Rule::NotEmpty).or_text("role"),
            "Claim that holds the role, which must not be `trusted`.";
        ..DEFAULT_ROLE;
        "clock_skew" = integer(0, 600).or(60),
            "Tolerated difference between the issuer's clock and the router's, in seconds.";
    }

    pub(super) const JWKS_FILE = "jwks_file": text(Rule::Path).optional().environment(),
        "File with the issuer's public keys, a JSON Web Key Set. The router reloads a changed file within three \
         seconds. While the file has an error, the previous keys stay in force. A relative path starts at the \
         node's directory. Give either this key or `jwks_url`.";

    pub(super) const JWKS_URL = "jwks_url": text(Rule::HttpUrl).optional().environment(),
        "URL of the issuer's key set, `https://…` or `http://…`. The router fetches it at start, and again \
         after the server's `max-age`. If a fetch fails, the previous keys stay in force. Redirections are not \
         followed.";

    pub(super) const JWKS_CA_CERTIFICATES = "jwks_ca_certificates": list_not_empty(&text(Rule::Path)).optional(),
        "PEM files of certificate authorities trusted for the key server, beside those of the system.";

    pub(super) const JWKS_REFRESH_S_MIN = "jwks_refresh_s_min": integer(1, 86_400).or(30),
        "Minimum time between two fetches of the key set, in seconds. It applies whatever the server's \
         `max-age` or a token's key id says.";

    pub(super) const JWKS_REFRESH_S_MAX = "jwks_refresh_s_max": integer(1, 604_800).or(3_600),
        "Maximum age of the fetched key set, in seconds, also if the server sends no `max-age`.";

    pub(super) const JWKS_TIMEOUT_MS = "jwks_timeout_ms": integer(1, 60_000).or(5_000),
        "Maximum time for the key server's whole answer, in milliseconds.";

    pub(super) const JWKS_BYTES_MAX = "jwks_bytes_max": integer(1, 16 << 20).or(262_144),
        "Maximum size of the key server's answer, in bytes. A longer one is an error.";

    pub(super) words ALGORITHMS("auth.jwt[static].algorithms[]") {
        "RS256",
        "RS384",
        "RS512",
        "PS256",
        "PS384",
        "PS512",
        "ES256",
        "ES384",
        "EdDSA",
    }
}
