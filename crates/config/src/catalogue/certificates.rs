//! Authentication by a TLS client's certificate: every key that is taken. Flat.

use super::auth::{DEFAULT_ROLE, DYNAMIC, FUNCTION, ROLE_OF_PRINCIPAL};
use super::form::{Kind, Rule, TYPE, Table, Tagged, key};

pub(super) static TLS_AUTH: Tagged = Tagged {
    path: "auth.tls.type",
    name: "authentication by certificate",
    variants: &[
        ("static", &TLS_STATIC),
        ("dynamic", &TLS_DYNAMIC),
        ("function", &TLS_FUNCTION),
    ],
};

static TLS_STATIC: Table = Table {
    path: "auth.tls[static]",
    name: "authentication by certificate",
    keys: &[
        TYPE,
        key(
            "principals",
            Kind::Map {
                keys: Rule::NotEmpty,
                of: &Kind::Object(&TLS_PRINCIPAL),
                environment: false,
            },
            "Principals by authid. A certificate must match every field that is given for the principal.",
        )
        .required(),
        DEFAULT_ROLE.own(),
    ],
};

static TLS_PRINCIPAL: Table = Table {
    path: "auth.tls[static].principals{}",
    name: "a principal with a certificate",
    keys: &[
        key(
            "certificate-sha1",
            Kind::Text(Rule::NotEmpty),
            "SHA-1 fingerprint of the certificate: 40 hexadecimal digits, with or without colons. Prefer \
             `certificate-sha256`: two certificates with the same SHA-1 can be made.",
        ),
        key(
            "certificate-sha256",
            Kind::Text(Rule::NotEmpty),
            "SHA-256 fingerprint of the certificate: 64 hexadecimal digits, with or without colons.",
        )
        .own(),
        key(
            "subject",
            Kind::Map {
                keys: Rule::NotEmpty,
                of: &Kind::Text(Rule::NotEmpty),
                environment: false,
            },
            "Attributes of the certificate's subject by short name, such as `cn`, `o` and `ou`, each with its value.",
        )
        .own(),
        key(
            "san",
            Kind::Text(Rule::NotEmpty),
            "Subject alternative name of the certificate, with its kind: `DNS:`, `email:`, `URI:` or `IP Address:`.",
        )
        .own(),
        ROLE_OF_PRINCIPAL,
    ],
};

static TLS_DYNAMIC: Table = Table {
    path: "auth.tls[dynamic]",
    name: "authentication by certificate and a procedure",
    keys: DYNAMIC,
};

/// Crossbar.io's check takes it, and its router then fails.
static TLS_FUNCTION: Table = Table {
    path: "auth.tls[function]",
    name: "authentication by certificate and a function",
    keys: FUNCTION,
};
