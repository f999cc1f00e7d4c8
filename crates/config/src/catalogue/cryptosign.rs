//! Keys of WAMP-cryptosign.

use super::auth::{DEFAULT_ROLE, DYNAMIC, FUNCTION, PRINCIPALS_FILE, ROLE_OF_PRINCIPAL};
use super::form::{Rule, TYPE, list_not_empty, map, object, text};
use super::table::tables;

tables! {
    pub(super) tagged CRYPTOSIGN("auth.cryptosign.type", "WAMP-cryptosign") {
        "static" => CRYPTOSIGN_STATIC, "dynamic" => CRYPTOSIGN_DYNAMIC, "function" => CRYPTOSIGN_FUNCTION
    }

    static CRYPTOSIGN_STATIC("auth.cryptosign[static]", "WAMP-cryptosign") {
        ..TYPE;
        "principals" = map(Rule::NotEmpty, &object(&CRYPTOSIGN_PRINCIPAL)).otherwise("read from `principals_file`"),
            "Principals by authid. A client that sends no authid is the principal that has its key.";
        ..PRINCIPALS_FILE, DEFAULT_ROLE.own();
    }

    static CRYPTOSIGN_PRINCIPAL("auth.cryptosign[static].principals{}", "a principal with keys") {
        "authorized_keys" = list_not_empty(&text(Rule::Hexadecimal64)).required(),
            "Public keys of the principal (Ed25519), each 64 hexadecimal digits.";
        ..ROLE_OF_PRINCIPAL;
        "realm" = text(Rule::RealmName).otherwise("the realm that they ask for"),
            "Realm that the principal's sessions join, whichever they ask for.";
    }

    static CRYPTOSIGN_DYNAMIC("auth.cryptosign[dynamic]", "WAMP-cryptosign by a procedure") = DYNAMIC;
    static CRYPTOSIGN_FUNCTION("auth.cryptosign[function]", "WAMP-cryptosign by a function") = FUNCTION;
}
