//! SCRAM: vectors computed by other implementations, and handshakes.

use std::time::Duration;

use crosstie_auth::wamp::scram::{
    AuthMessage, Credential, Function, Kdf, Keys, Principals, Reading, SaltedPassword,
};
use crosstie_auth::wamp::{Authenticator, ErrorTexts, Methods, Scram};

use crate::script::check;

const SALT: &[u8] = &[
    0x3b, 0xc3, 0xca, 0x01, 0xdd, 0x1d, 0x50, 0x1c, 0xa1, 0xc2, 0x2e, 0x1c, 0x5d, 0x7d, 0x16, 0xfe,
];
const SERVER_NONCE: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn kdf(function: Function) -> Kdf {
    Kdf {
        function,
        iterations: 4_096,
        memory_kib: Some(512),
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Each row: a function and encoding, the two keys, the proof, and the router's answer.
#[test]
fn keys_and_proofs() {
    let message = |binding| AuthMessage {
        name: "user1",
        client_nonce: "AAECAwQFBgcICQoLDA0ODw==",
        nonce: SERVER_NONCE,
        salt: "O8PKAd0dUByhwi4cXX0W/g==",
        iterations: 4_096,
        binding,
    };
    for (function, reading, binding, expected) in [
        (
            Function::Argon2id,
            Reading::Autobahn,
            AuthMessage::NO_BINDING,
            [
                "eabc85471453de6c19df551f8ec1fc2963c3d251df4d1973248d85c7dc79278d",
                "4de66c0f81831f627554c66d4d29099bb583f2b79a74f7a3585ad106ba7d106c",
                "E9PY7BtAgcRzSOVO3BpAMjB5qQ8VbSOHLJdkYILc414=",
                "0f9Q2Dmay2lEv49WjJ4U4bGv1ttbsG1l8MqMC1YF4Qk=",
            ],
        ),
        (
            Function::Argon2id,
            Reading::Specification,
            AuthMessage::BINDING_NOT_ASKED_FOR,
            [
                "d0e2c33453981a2d6285897c00a3adf560185a8a02f8a4a2dd804f1dd4e78140",
                "aadc5cef53dccb4da02665a1500ef081e93e719b02518798a6497d52feeacc30",
                "h7i80hH31VM/UePnPUv2EtjdChc+2X5Om2vlKGaOlFw=",
                "h/XLTOXB/p1Y9zBThiV6MmZCghlwjeNN9ZLFxabXp8Q=",
            ],
        ),
        (
            Function::Pbkdf2,
            Reading::Specification,
            AuthMessage::BINDING_NOT_ASKED_FOR,
            [
                "72a01e37ab7e4a71eca3b776b9741be6087622308180b524f18e91c7a9268e92",
                "ed8f9a6a1e5944a5086d84e8ec56b7a6452a6d7d27269a53ee298eb67ea26666",
                "yCfW8Z/A9iaR8jwME3/OL6nrUAQDtxGGbIZVA4qh1nI=",
                "8xJDdNjbEVBcFmdKYLQC8iY73Wc3NMNrC4jTnSv+vdk=",
            ],
        ),
    ] {
        let salted = kdf(function).derive("p4ssw0rd", SALT, reading);
        let salted = salted.expect("is within bounds");
        let keys = salted.keys();
        let message = message(binding);
        let found = [
            digits(&keys.stored),
            digits(&keys.server),
            salted.prove(&message),
            keys.verifier(&message.to_string()),
        ];
        assert_eq!(found, expected, "{function:?} {reading:?}");
    }
}

/// Autobahn uses the hash's text as the hash.
#[test]
fn a_hash_as_text() {
    let text = SaltedPassword::new("SX/wXDsmF32HXWm8TtlJutZJsQKdcOP1uLnjGHdSEOY");
    let derived = kdf(Function::Argon2id).derive("p4ssw0rd", SALT, Reading::Autobahn);
    assert_eq!(derived, Ok(text));
}

/// RFC 7677, section 3.
#[test]
fn the_rfcs_proof() {
    let salt = [
        0x5b, 0x6d, 0x99, 0x68, 0x9d, 0x12, 0x35, 0x8e, 0xec, 0xa0, 0x4b, 0x14, 0x12, 0x36, 0xfa,
        0x81,
    ];
    let derived = kdf(Function::Pbkdf2).derive("pencil", &salt, Reading::Specification);
    let salted = derived.expect("is within bounds");
    let message = AuthMessage {
        name: "user",
        client_nonce: "rOprNGfwEbeRWgbNEkqO",
        nonce: "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        salt: "W22ZaJ0SNY7soEsUEjb6gQ==",
        iterations: 4_096,
        binding: AuthMessage::BINDING_NOT_ASKED_FOR,
    };
    let proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    assert_eq!(salted.prove(&message), proof);
    let verifier = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
    assert_eq!(salted.keys().verifier(&message.to_string()), verifier);
}

#[test]
fn passwords_in_the_form_of_saslprep() {
    let kdf = Kdf {
        function: Function::Pbkdf2,
        iterations: 1,
        memory_kib: None,
    };
    let derive = |password| kdf.derive(password, SALT, Reading::Specification);
    // A soft hyphen maps to nothing, a Roman nine to two letters (RFC 4013, section 3).
    assert_eq!(derive("I\u{ad}X"), derive("\u{2168}"));
    assert!(derive("I\u{7}X").is_err());
}

/// Each row: a function, its iterations and memory, a salt, the first key, and the error; `K` is a valid key.
const CREDENTIALS: &str = r#"
argon2id-13 1 8 00 K
argon2id13 1 8 aBcD K
pbkdf2 1 - 00 K
pbkdf2 1 0 00 K
argon2id 1 8 00 K: kdf: expected "argon2id-13" or "pbkdf2", found "argon2id"
pbkdf2 0 - 00 K: iterations: expected 1 to 10000000
argon2id-13 1 - 00 K: memory: expected a number of KiB, which argon2id-13 needs
argon2id-13 1 7 00 K: memory: expected 8 to 4194304 KiB
pbkdf2 1 - 0 K: salt: expected 1 to 256 bytes in hexadecimal digits
pbkdf2 1 - 0g K: salt: expected 1 to 256 bytes in hexadecimal digits
pbkdf2 1 - ßß K: salt: expected 1 to 256 bytes in hexadecimal digits
pbkdf2 1 - KKKKKKKKK K: salt: expected 1 to 256 bytes in hexadecimal digits
pbkdf2 1 - 00 0: stored-key: expected 64 hexadecimal digits
pbkdf2 1 - 00 KK: stored-key: expected 64 hexadecimal digits
"#;

#[test]
fn bounds_of_a_credential() {
    let key = "00".repeat(32);
    for row in CREDENTIALS.lines().filter(|row| !row.is_empty()) {
        let (fields, expected) = row.split_once(": ").unwrap_or((row, ""));
        let mut fields = fields.split(' ').map(|field| field.replace('K', &key));
        let mut next = || fields.next().expect("five fields");
        let (name, iterations, memory_kib) = (next(), next(), next());
        let iterations = iterations.parse().expect("a number");
        let [salt, stored] = [next(), next()];
        let digits = [&*salt, &*stored, &*key];
        let made = Credential::parse(&name, iterations, memory_kib.parse().ok(), digits);
        let found = made.map_or_else(|e| e.to_string(), |_| String::new());
        assert_eq!(found, expected, "{row}");
    }
}

fn credential(function: Function, password: &str, reading: Reading) -> Credential {
    let kdf = Kdf {
        function,
        iterations: 1,
        memory_kib: Some(8).filter(|_| function == Function::Argon2id),
    };
    let salted = kdf.derive(password, SALT, reading).expect("can be done");
    Credential::new(kdf, SALT.to_owned(), salted.keys()).expect("is within bounds")
}

fn principals() -> Methods {
    let mut principals = Principals::default();
    let argon2id = credential(Function::Argon2id, "pw", Reading::Autobahn);
    principals.insert("joe", argon2id, Some("user"));
    let argon2id = credential(Function::Argon2id, "pw", Reading::Specification);
    principals.insert("ann", argon2id, Some("user"));
    let pbkdf2 = credential(Function::Pbkdf2, "pw", Reading::Specification);
    principals.insert("a,b=c", pbkdf2.clone(), None);
    principals.insert("\u{2168}", pbkdf2, None);
    Methods {
        scram: Some(Scram::Static {
            principals: principals.into(),
            default_role: Some("member".into()),
        }),
        ..Methods::default()
    }
}

/// The script's HELLO, by the name of the method.
const AUTOBAHN: &str = r#"methods=scram extra={"nonce":"AAECAwQFBgcICQoLDA0ODw=="}"#;
const SPECIFIED: &str =
    r#"methods=wamp-scram extra={"nonce":"AAECAwQFBgcICQoLDA0ODw==","channel_binding":null}"#;
const NOT_VALID: &str = "refuse wamp.error.not_authorized (wrong_signature): the authid or its credentials are not valid";

/// Autobahn reads the client's nonce as bytes, the specification as text.
#[test]
fn a_proof() {
    check(
        &principals(),
        &format!(
            r#"> hello authid=joe {AUTOBAHN}
            < challenge scram {{"nonce":"AAECAwQFBgcICQoLDA0ODwcHBwcHBwcHBwcHBwcHBwc=","kdf":"argon2id-13","salt":"O8PKAd0dUByhwi4cXX0W/g==","iterations":1,"memory":8}}
            > prove autobahn c= pw
            < accept realm1 joe user scram static {{"scram_server_signature":"…","verifier":"v=…"}}
            > hello authid=ann {SPECIFIED}
            < challenge wamp-scram {{"nonce":"AAECAwQFBgcICQoLDA0ODw==BwcHBwcHBwcHBwcHBwcHBw==","kdf":"argon2id13","salt":"O8PKAd0dUByhwi4cXX0W/g==","iterations":1,"memory":8}}
            > prove specification c=biws pw {{"nonce":"AAECAwQFBgcICQoLDA0ODw==BwcHBwcHBwcHBwcHBwcHBw==","channel_binding":null,"cbind_data":null}}
            < accept realm1 ann user wamp-scram static {{"scram_server_signature":"…","verifier":"v=…"}}"#
        ),
    );
}

/// PBKDF2 needs no memory. Names are normalized, and escaped or not.
#[test]
fn forms_of_names() {
    let methods = principals();
    for (authid, name) in [
        ("a,b=c", "a=2Cb=3Dc"),
        ("a,b=c", "a,b=c"),
        ("\u{2168}", "IX"),
    ] {
        check(
            &methods,
            &format!(
                r#"> hello authid={authid} {SPECIFIED}
                < challenge wamp-scram {{"nonce":"AAECAwQFBgcICQoLDA0ODw==BwcHBwcHBwcHBwcHBwcHBw==","kdf":"pbkdf2","salt":"O8PKAd0dUByhwi4cXX0W/g==","iterations":1,"memory":null}}
                > name {name}
                > prove specification c=biws pw
                < accept realm1 {authid} member wamp-scram static {{"scram_server_signature":"…","verifier":"v=…"}}
                > hello authid={authid} {AUTOBAHN}
                < challenge scram {{"nonce":"AAECAwQFBgcICQoLDA0ODwcHBwcHBwcHBwcHBwcHBwc=","kdf":"pbkdf2","salt":"O8PKAd0dUByhwi4cXX0W/g==","iterations":1}}
                > name {name}
                > prove specification c= pw
                < accept realm1 {authid} member scram static {{"scram_server_signature":"…","verifier":"v=…"}}"#
            ),
        );
    }
}

#[test]
fn malformed_and_wrong_proofs() {
    let methods = principals();
    let nonce = "AAECAwQFBgcICQoLDA0ODw==BwcHBwcHBwcHBwcHBwcHBw==";
    let malformed = "refuse wamp.error.not_authorized (malformed_extra): AUTHENTICATE.Extra";
    for (said, outcome) in [
        ("prove specification c=biws wrong", NOT_VALID),
        // Another encoding has other keys.
        ("prove autobahn c=biws pw", NOT_VALID),
        // A client that is bound to a channel (`p=tls-unique,,`).
        ("prove specification c=cD10bHMtdW5pcXVlLCw= pw", NOT_VALID),
        // The proof of another challenge.
        (
            "authenticate E9PY7BtAgcRzSOVO3BpAMjB5qQ8VbSOHLJdkYILc414=",
            NOT_VALID,
        ),
        ("authenticate ", NOT_VALID),
        ("authenticate AAAA", NOT_VALID),
        (
            "authenticate AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            NOT_VALID,
        ),
        ("authenticate \u{1f600}", NOT_VALID),
        (
            r#"prove specification c=biws pw {"nonce":"AAECAwQFBgcICQoLDA0ODw=="}"#,
            NOT_VALID,
        ),
        (
            r#"prove specification c=biws pw {"nonce":5}"#,
            &format!("{malformed}.nonce: expected text"),
        ),
        (
            r#"prove specification c=biws pw {"channel_binding":"tls-unique"}"#,
            &format!("{malformed}.channel_binding: expected null, as HELLO had it"),
        ),
        (
            r#"prove specification c=biws pw {"cbind_data":"AAAA"}"#,
            &format!("{malformed}.cbind_data: expected null, as HELLO had it"),
        ),
    ] {
        check(
            &methods,
            &format!(
                r#"> hello authid=ann {SPECIFIED}
                < challenge wamp-scram {{"nonce":"{nonce}","kdf":"argon2id13","salt":"O8PKAd0dUByhwi4cXX0W/g==","iterations":1,"memory":8}}
                > {said}
                < {outcome}
                > prove specification c=biws pw
                < not due"#
            ),
        );
    }
}

/// The header `y,,`: the client supports channel binding, and takes the router not to. The nonce is no Base64.
#[test]
fn the_forms_of_rfc_5802() {
    check(
        &principals(),
        r#"> hello authid=ann methods=wamp-scram extra={"nonce":"a-nonce/!"}
           < challenge wamp-scram {"nonce":"a-nonce/!BwcHBwcHBwcHBwcHBwcHBw==","kdf":"argon2id13","salt":"O8PKAd0dUByhwi4cXX0W/g==","iterations":1,"memory":8}
           > prove specification c=eSws pw
           < accept realm1 ann user wamp-scram static {"scram_server_signature":"…","verifier":"v=…"}"#,
    );
}

#[test]
fn malformed_extras_of_hello() {
    let methods = principals();
    let refuse = "refuse wamp.error.not_authorized";
    let nonce = "HELLO.Details.authextra.nonce: expected 1 to 344 printable ASCII characters without a comma, which SCRAM needs";
    let long = format!("extra={{\"nonce\":\"{}\"}}", "A".repeat(345));
    for (extra, outcome) in [
        ("", format!("(malformed_extra): {nonce}")),
        (r#"extra={}"#, format!("(malformed_extra): {nonce}")),
        (r#"extra={"nonce":null}"#, format!("(malformed_extra): {nonce}")),
        (r#"extra={"nonce":5}"#, format!("(malformed_extra): {nonce}")),
        (r#"extra={"nonce":""}"#, format!("(malformed_extra): {nonce}")),
        (r#"extra={"nonce":"A,A"}"#, format!("(malformed_extra): {nonce}")),
        (r#"extra={"nonce":"A\u0000"}"#, format!("(malformed_extra): {nonce}")),
        (r#"extra={"nonce":"é"}"#, format!("(malformed_extra): {nonce}")),
        (&long, format!("(malformed_extra): {nonce}")),
        (
            r#"extra={"nonce":"AAAA","channel_binding":"tls-unique"}"#,
            "(no_channel_binding): HELLO.Details.authextra.channel_binding: SCRAM is bound to no channel here; expected null, found tls-unique".to_owned(),
        ),
        (
            r#"extra={"nonce":"AAAA","channel_binding":[]}"#,
            "(no_channel_binding): HELLO.Details.authextra.channel_binding: SCRAM is bound to no channel here; expected null, found no text".to_owned(),
        ),
    ] {
        let hello = format!("hello authid=ann methods=wamp-scram {extra}");
        check(&methods, &format!("> {hello}\n< {refuse} {outcome}"));
    }
    let nonce =
        "HELLO.Details.authextra.nonce: expected 1 to 256 bytes in Base64, which SCRAM needs";
    let long = "AAAA".repeat(86);
    for found in ["A", "AA=A", &long] {
        let hello = format!("hello authid=ann methods=scram extra={{\"nonce\":\"{found}\"}}");
        let outcome = format!("(malformed_extra): {nonce}");
        check(&methods, &format!("> {hello}\n< {refuse} {outcome}"));
    }
    check(
        &methods,
        &format!(
            "> hello {AUTOBAHN}
             < {refuse} (no_authid): HELLO.Details.authid: expected text, which authmethod scram needs"
        ),
    );
}

/// An unknown authid gets a principal's kind of challenge, the same one each time.
#[test]
fn unknown_authids_are_challenged() {
    let challenge = r#"challenge scram {"nonce":"AAECAwQFBgcICQoLDA0ODwcHBwcHBwcHBwcHBwcHBwc=","kdf":"argon2id-13","salt":"PNMwr8kP6S+MhbXLfRfqmA==","iterations":1,"memory":8}"#;
    let methods = principals();
    check(
        &methods,
        &format!(
            "> hello authid=zed {AUTOBAHN}
             < {challenge}
             > prove autobahn c= pw
             < refuse wamp.error.not_authorized (unknown_principal): the authid or its credentials are not valid
             > hello authid=zed {AUTOBAHN}
             < {challenge}"
        ),
    );
    let nobody = Methods {
        scram: Some(Scram::Static {
            principals: Principals::default().into(),
            default_role: None,
        }),
        ..Methods::default()
    };
    check(
        &nobody,
        &format!(
            "> hello authid=zed {AUTOBAHN}
             < refuse wamp.error.not_authorized (unknown_principal): the authid or its credentials are not valid"
        ),
    );
    let crossbar = Methods {
        error_texts: ErrorTexts::Crossbar,
        ..methods
    };
    check(
        &crossbar,
        &format!(
            "> hello authid=zed {AUTOBAHN}
             < refuse wamp.error.not_authorized (unknown_principal): no principal with authid \"zed\" exists"
        ),
    );
}

#[test]
fn keys_from_an_authenticator() {
    let authenticator = Authenticator {
        procedure: "com.auth".into(),
        authprovider: crosstie_auth::wamp::Provider::Dynamic,
        realm: None,
        role: "trusted".into(),
        default_role: Some("member".into()),
        timeout: Duration::from_secs(5),
    };
    let methods = Methods {
        scram: Some(Scram::Dynamic(authenticator)),
        ..Methods::default()
    };
    let salted = credential_digits();
    let ask = format!(
        r#"> hello authid=joe {AUTOBAHN}
        < call com.auth in realm1 by trusted: realm1 Some("joe") {{"session":1978051601041160,"authmethod":"scram","authextra":{{"nonce":"AAECAwQFBgcICQoLDA0ODw=="}},"authid":"joe","authrole":null}}"#
    );
    let failed = "refuse wamp.error.authentication_failed (authenticator_failed): got";
    for (answer, outcome) in [
        (
            format!(r#"{{"kdf":"pbkdf2","iterations":1,"memory":null,"role":"user","authid":"joseph","extra":{{"x":1,"verifier":0}},{salted}}}"#),
            r#"challenge scram {"nonce":"AAECAwQFBgcICQoLDA0ODwcHBwcHBwcHBwcHBwcHBwc=","kdf":"pbkdf2","salt":"O8PKAd0dUByhwi4cXX0W/g==","iterations":1}
            > prove autobahn c= pw
            < accept realm1 joseph user scram dynamic {"x":1,"scram_server_signature":"…","verifier":"v=…"}"#.to_owned(),
        ),
        (
            format!(r#"{{"kdf":"pbkdf2","iterations":1,{salted}}}"#),
            format!(r#"challenge scram {{"nonce":"AAECAwQFBgcICQoLDA0ODwcHBwcHBwcHBwcHBwcHBwc=","kdf":"pbkdf2","salt":"O8PKAd0dUByhwi4cXX0W/g==","iterations":1}}
            > prove autobahn c= wrong
            < {NOT_VALID}"#),
        ),
        (
            "\"user\"".to_owned(),
            format!("{failed} invalid return type \"text\" from dynamic authenticator"),
        ),
        (
            r#"{"role":"user"}"#.to_owned(),
            format!("{failed} a principal without \"kdf\" from the dynamic authenticator"),
        ),
        (
            format!(r#"{{"kdf":"pbkdf2",{salted}}}"#),
            format!("{failed} a principal without \"iterations\" from the dynamic authenticator"),
        ),
        (
            format!(r#"{{"kdf":"pbkdf2","iterations":-1,{salted}}}"#),
            format!("{failed} integer for \"iterations\" from dynamic authenticator, expected a number"),
        ),
        (
            format!(r#"{{"kdf":"argon2id-13","iterations":1,{salted}}}"#),
            format!("{failed} a bad credential from the dynamic authenticator: memory: expected a number of KiB, which argon2id-13 needs"),
        ),
        (
            format!(r#"{{"kdf":["pbkdf2"],"iterations":1,{salted}}}"#),
            format!("{failed} list for \"kdf\" from dynamic authenticator, expected text"),
        ),
        (
            r#"{"kdf":"pbkdf2","iterations":1,"salt":"00","stored-key":"00","server-key":"00"}"#.to_owned(),
            format!("{failed} a bad credential from the dynamic authenticator: stored-key: expected 64 hexadecimal digits"),
        ),
    ] {
        check(&methods, &format!("{ask}\n> answer {answer}\n< {outcome}"));
    }
}

/// An authenticator's credential for `pw` with PBKDF2.
fn credential_digits() -> String {
    let kdf = Kdf {
        function: Function::Pbkdf2,
        iterations: 1,
        memory_kib: None,
    };
    let derived = kdf.derive("pw", SALT, Reading::Specification);
    let Keys { stored, server } = derived.expect("can be done").keys();
    let [salt, stored, server] = [SALT, &stored, &server].map(digits);
    format!(r#""salt":"{salt}","stored-key":"{stored}","server-key":"{server}""#)
}

#[test]
fn nothing_secret_is_printed() {
    let salted = SaltedPassword::new("hunter2");
    let Keys { stored, server } = salted.keys();
    let kdf = kdf(Function::Pbkdf2);
    let credential = Credential::new(kdf, SALT.to_owned(), salted.keys()).expect("is one");
    let mut principals = Principals::default();
    principals.insert("joe", credential, None);
    let shown = format!("{principals:?} {salted:?}");
    for bytes in [&stored[..], &server, b"hunter2"] {
        assert!(!shown.contains(&digits(bytes)), "{shown}");
        assert!(!shown.contains(&format!("{bytes:?}")), "{shown}");
    }
}
