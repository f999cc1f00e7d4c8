//! Keys of authentication.

use crosstie_auth::wamp::ErrorTexts;

use super::certificates::TLS_AUTH;
use super::cookie::COOKIE_AUTH;
use super::cryptosign::CRYPTOSIGN;
use super::form::{Kind, OFF, Rule, SECRET, TYPE, integer, map, object, one_of, tagged, text};
use super::jwt::JWT;
use super::scram::SCRAM;
use super::table::tables;

tables! {
    pub(crate) static AUTH("auth", "a transport's auth") {
        "anonymous" = tagged(&ANONYMOUS).otherwise("enabled if no other method is given, else disabled"),
            "Accepts sessions without credentials.";
        "ticket" = tagged(&TICKET).otherwise("disabled"), "Accepts sessions that send the ticket of a principal.";
        "wampcra" = tagged(&WAMPCRA).otherwise("disabled"),
            "Accepts sessions that sign a challenge with a shared secret (WAMP-CRA).";
        "scram" = tagged(&SCRAM).otherwise("disabled"),
            "Accepts sessions that prove knowledge of a password (SCRAM). The router stores only the keys that \
             verify the proof. A client's method may be named `scram` or `wamp-scram`.";
        "cryptosign" = tagged(&CRYPTOSIGN).otherwise("disabled"),
            "Accepts sessions that sign a challenge with an Ed25519 key (WAMP-cryptosign).";
        "jwt" = tagged(&JWT).otherwise("disabled").own(), "Accepts sessions that send a JSON Web Token of an issuer.";
        "tls" = tagged(&TLS_AUTH).otherwise("disabled"),
            "Accepts sessions whose connection has presented a TLS client certificate. The endpoint's \
             `ca_certificates` request it.";
        "cookie" = object(&COOKIE_AUTH).otherwise("disabled"),
            "Accepts sessions whose browser has logged in before by another method and sends the same `cookie`.";
        "end_revoked_sessions" = OFF.own(),
            "Ends the sessions of a principal at once when its file no longer has it, or changes its secret, key or \
             role. With `false` the sessions continue until their clients leave. Its cookies, cached decisions and \
             sessions awaiting resumption end in either case.";
        "error_texts" = one_of(&ERROR_TEXTS).or_text("neutral").own(),
            "Error texts for clients that fail to log in. `neutral` does not reveal whether the principal exists. \
             `crossbar` uses Crossbar.io's texts, which reveal it, and rejects unknown principals before a \
             challenge.";
    }

    words ERROR_TEXTS("auth.error_texts") => ErrorTexts { "neutral" => Neutral, "crossbar" => Crossbar }

    pub(super) const DEFAULT_ROLE = "default-role": text(Rule::NotEmpty).otherwise("none: they are rejected"),
        "Role of principals that have no role of their own.";

    pub(super) const PRINCIPALS_FILE = "principals_file": text(Rule::Path).optional().environment().own(),
        "JSON or YAML file that holds the value of `principals`. The router reloads a changed file within three \
         seconds. While the file has an error, the previous content stays in force. A relative path starts at the \
         node's directory.";

    /// Keys of an authenticator that is a procedure.
    pub(super) const DYNAMIC {
        ..TYPE;
        "authenticator" = text(Rule::ExactUri).required(),
            "Authenticator: the procedure that the router calls with the realm, the authid and a dictionary of \
             details. It returns a role, or a dictionary with `role`, `realm`, `authid` and `extra`. For WAMP-CRA \
             the dictionary also has `secret`, which is required, `salt`, `iterations` and `keylen`. For SCRAM it \
             has the keys of a SCRAM principal. For WAMP-cryptosign it has `pubkey`, which is required.";
        "authenticator-realm" = text(Rule::RealmName).otherwise("the realm that the client asks for"),
            "Realm that the authenticator is registered in.";
        "authenticator-role" = text(Rule::NotEmpty).or_text("trusted"),
            "Role of the router's own session that calls the authenticator.";
        ..DEFAULT_ROLE, TIMEOUT;
    }

    const TIMEOUT = "authenticator_timeout_ms": integer(1, 3_600_000).or(5_000).own(),
        "Maximum time for the authenticator to answer, in milliseconds. After it the router rejects the client. \
         `handshake_timeout_ms` bounds the whole handshake.";

    /// Keys of an authenticator that is a function.
    pub(super) const FUNCTION {
        ..TYPE;
        "create" = text(Rule::PythonName).required(),
            "Python function that makes the authenticator, as `package.module.function`. It is called with `config` \
             and None, and returns a function of realm, authid and details. That function answers as a procedure \
             does. Both run in the process of the worker's components.";
        "config" = Kind::Json.otherwise("an empty dictionary"), "Value of any type, passed to `create`.";
        "expose_controller" = Kind::Only(
            false,
            "`create` is called with None; an authenticator that is to manage the node connects to its management \
             realm like any client",
        ).or_no(),
            "Passes the node's controller to `create`.";
        ..DEFAULT_ROLE, TIMEOUT;
    }

    pub(super) tagged ANONYMOUS("auth.anonymous.type", "anonymous authentication") {
        "static" => ANONYMOUS_STATIC, "dynamic" => ANONYMOUS_DYNAMIC, "function" => ANONYMOUS_FUNCTION
    }

    pub(super) static ANONYMOUS_STATIC("auth.anonymous[static]", "anonymous authentication") {
        ..TYPE;
        "role" = text(Rule::NotEmpty).or_text("anonymous"), "Role of anonymous sessions.";
        "realm" = text(Rule::RealmName).otherwise("the realm that they ask for"),
            "Realm that anonymous sessions must join.";
        "authid" = text(Rule::NotEmpty).otherwise("a new one for each session"), "Authid of all anonymous sessions.";
    }

    tagged TICKET("auth.ticket.type", "authentication by ticket") {
        "static" => TICKET_STATIC, "dynamic" => TICKET_DYNAMIC, "function" => TICKET_FUNCTION
    }

    static TICKET_STATIC("auth.ticket[static]", "authentication by ticket") {
        ..TYPE;
        "principals" = map(Rule::NotEmpty, &object(&TICKET_PRINCIPAL)).otherwise("read from `principals_file`"),
            "Principals by authid.";
        ..PRINCIPALS_FILE, DEFAULT_ROLE.own();
    }

    static TICKET_PRINCIPAL("auth.ticket[static].principals{}", "a principal with a ticket") {
        "ticket" = SECRET.otherwise("none, with `ticket_hash`").environment(), "Ticket that the principal sends.";
        "ticket_hash" = SECRET.otherwise("made from the ticket").environment().own(),
            "Hash in place of the ticket, made by `crosstie passwd`. For a random ticket: `sha256:` and 64 \
             hexadecimal digits. For a password: `$argon2id$v=19$m=…,t=…,p=…$SALT$HASH` or \
             `$pbkdf2-sha256$i=…$SALT$HASH`.";
        ..ROLE_OF_PRINCIPAL;
    }

    pub(super) const ROLE_OF_PRINCIPAL = "role": text(Rule::NotEmpty).otherwise("`default-role`"),
        "Role of the principal's sessions.";

    tagged WAMPCRA("auth.wampcra.type", "WAMP-CRA") {
        "static" => WAMPCRA_STATIC, "dynamic" => WAMPCRA_DYNAMIC, "function" => WAMPCRA_FUNCTION
    }

    static WAMPCRA_STATIC("auth.wampcra[static]", "WAMP-CRA") {
        ..TYPE;
        "users" = map(Rule::NotEmpty, &object(&WAMPCRA_USER)).otherwise("read from `users_file`"),
            "Principals by authid.";
        "users_file" = text(Rule::Path).optional().environment().own(),
            "JSON or YAML file that holds the value of `users`. The router reloads a changed file within three \
             seconds. While the file has an error, the previous content stays in force. A relative path starts at \
             the node's directory.";
        ..DEFAULT_ROLE.own();
    }

    static WAMPCRA_USER("auth.wampcra[static].users{}", "a user with a secret") {
        "secret" = SECRET.required().environment(),
            "Secret that signs the challenge. With a `salt` it is either the password or the key derived from it \
             (PBKDF2 with SHA-256, in Base64), so that the file need not hold the password. The router accepts \
             both.";
        ..ROLE_OF_PRINCIPAL;
        "salt" = text(Rule::NotEmpty).otherwise("the secret itself is the key"),
            "Salt of the key derivation in the client (PBKDF2).";
        "iterations" = integer(1, 1_000_000).or(1_000),
            "Number of iterations of the key derivation. An attacker with the configuration needs as many for each \
             guess.";
        "keylen" = integer(1, 64).or(32), "Length of the derived key, in bytes.";
    }

    static ANONYMOUS_DYNAMIC("auth.anonymous[dynamic]", "anonymous authentication by a procedure") = DYNAMIC;
    static TICKET_DYNAMIC("auth.ticket[dynamic]", "authentication by ticket and a procedure") = DYNAMIC;
    static WAMPCRA_DYNAMIC("auth.wampcra[dynamic]", "WAMP-CRA by a procedure") = DYNAMIC;
    static ANONYMOUS_FUNCTION("auth.anonymous[function]", "anonymous authentication by a function") = FUNCTION;
    static TICKET_FUNCTION("auth.ticket[function]", "authentication by ticket and a function") = FUNCTION;
    static WAMPCRA_FUNCTION("auth.wampcra[function]", "WAMP-CRA by a function") = FUNCTION;
}
