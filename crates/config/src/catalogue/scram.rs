//! Keys of SCRAM.

use super::auth::{DEFAULT_ROLE, DYNAMIC, FUNCTION, PRINCIPALS_FILE, ROLE_OF_PRINCIPAL};
use super::form::{Rule, TYPE, integer, map, object, one_of, text};
use super::table::tables;

tables! {
    pub(super) tagged SCRAM("auth.scram.type", "SCRAM") {
        "static" => SCRAM_STATIC, "dynamic" => SCRAM_DYNAMIC, "function" => SCRAM_FUNCTION
    }

    static SCRAM_STATIC("auth.scram[static]", "SCRAM") {
        ..TYPE;
        "principals" = map(Rule::NotEmpty, &object(&SCRAM_PRINCIPAL)).otherwise("read from `principals_file`"),
            "Principals by authid.";
        ..PRINCIPALS_FILE, DEFAULT_ROLE.own();
    }

    static SCRAM_PRINCIPAL("auth.scram[static].principals{}", "a principal of SCRAM") {
        "kdf" = one_of(&FUNCTIONS).required(),
            "Key derivation function of the client. `argon2id13`, the specification's name for `argon2id-13`, is \
             accepted too.";
        "iterations" = integer(1, 10_000_000).required(), "Number of iterations of the key derivation.";
        "memory" = integer(0, 4 << 20).otherwise("required by Argon2id"),
            "Memory of Argon2id, in KiB, at least 8. PBKDF2 ignores it, though Crossbar.io requires the key.";
        "salt" = text(Rule::NotEmpty).required(),
            "Random salt of the principal, in hexadecimal digits. Every client that logs in receives it.";
        "stored-key" = text(Rule::NotEmpty).required().environment(),
            "Key that verifies the client's proof: 64 hexadecimal digits.";
        "server-key" = text(Rule::NotEmpty).required().environment(),
            "Key that signs the router's own proof: 64 hexadecimal digits.";
        ..ROLE_OF_PRINCIPAL;
    }

    words FUNCTIONS("auth.scram[static].principals{}.kdf") { "argon2id-13", "argon2id13", "pbkdf2" }

    static SCRAM_DYNAMIC("auth.scram[dynamic]", "SCRAM by a procedure") = DYNAMIC;
    static SCRAM_FUNCTION("auth.scram[function]", "SCRAM by a function") = FUNCTION;
}
