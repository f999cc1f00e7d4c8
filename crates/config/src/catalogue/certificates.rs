//! Keys of authentication by TLS client certificate.

use super::auth::{DEFAULT_ROLE, DYNAMIC, FUNCTION, ROLE_OF_PRINCIPAL};
use super::form::{Rule, TYPE, map, object, text};
use super::table::tables;

tables! {
    pub(super) tagged TLS_AUTH("auth.tls.type", "authentication by certificate") {
        "static" => TLS_STATIC, "dynamic" => TLS_DYNAMIC, "function" => TLS_FUNCTION
    }

    static TLS_STATIC("auth.tls[static]", "authentication by certificate") {
        ..TYPE;
        "principals" = map(Rule::NotEmpty, &object(&TLS_PRINCIPAL)).required(),
            "Principals by authid. A certificate must match every field that is given for the principal.";
        ..DEFAULT_ROLE.own();
    }

    static TLS_PRINCIPAL("auth.tls[static].principals{}", "a principal with a certificate") {
        "certificate-sha1" = text(Rule::NotEmpty).optional(),
            "SHA-1 fingerprint of the certificate: 40 hexadecimal digits, with or without colons. Prefer \
             `certificate-sha256`: two certificates with the same SHA-1 can be made.";
        "certificate-sha256" = text(Rule::NotEmpty).optional().own(),
            "SHA-256 fingerprint of the certificate: 64 hexadecimal digits, with or without colons.";
        "subject" = map(Rule::NotEmpty, &text(Rule::NotEmpty)).optional().own(),
            "Attributes of the certificate's subject by short name, such as `cn`, `o` and `ou`, each with its value.";
        "san" = text(Rule::NotEmpty).optional().own(),
            "Subject alternative name of the certificate, with its kind: `DNS:`, `email:`, `URI:` or `IP Address:`.";
        ..ROLE_OF_PRINCIPAL;
    }

    static TLS_DYNAMIC("auth.tls[dynamic]", "authentication by certificate and a procedure") = DYNAMIC;
    /// Crossbar.io's check accepts this type, but its router then fails.
    static TLS_FUNCTION("auth.tls[function]", "authentication by certificate and a function") = FUNCTION;
}
