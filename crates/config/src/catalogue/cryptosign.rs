//! Keys of WAMP-cryptosign.

use super::auth::{DEFAULT_ROLE, DYNAMIC, FUNCTION, ROLE_OF_PRINCIPAL};
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
        "principals_file" = text(Rule::Path).optional().environment().own(),
            "JSON or YAML file that holds the value of `principals`. The router reloads a changed file within three \
             seconds. While the file has an error, the previous content stays in force. A relative path starts at \
             the node's directory.";
        ..DEFAULT_ROLE.own();
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
