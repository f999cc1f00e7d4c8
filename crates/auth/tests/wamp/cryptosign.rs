//! WAMP-cryptosign: the vectors of the specification, and handshakes.

use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::wamp::{
    Authenticator, Channel, Cryptosign, ErrorTexts, KeyHolder, KeyHolders, Methods, Provider,
    PublicKey, SigningKey,
};

use crate::script::{GIVEN, bytes, check, check_over, key};

/// The specification's "Test Vectors": a channel id, a private key, a challenge and its signature.
const VECTORS: &str = "
- 4d57d97a68f555696620a6d849c0ce582568518d729eb753dc7c732de2804510 ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff b32675b221f08593213737bef8240e7c15228b07028e19595294678c90d11c0cae80a357331bfc5cc9fb71081464e6e75013517c2cf067ad566a6b7b728e5d03ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
- d511fe78e23934b3dadb52fcd022974b80bd92bccc7c5cf404e46cc0a8a2f5cd b26c1f87c13fc1da14997f1b5a71995dff8fbe0a62fae8473c7bdbd05bfb607d d4209ad10d5aff6bfbc009d7e924795de138a63515efc7afc6b01b7fe5201372190374886a70207b042294af5bd64ce725cd8dceb344e6d11c09d1aaaf4d660fb26c1f87c13fc1da14997f1b5a71995dff8fbe0a62fae8473c7bdbd05bfb607d
- 6e1fde9cf9e2359a87420b65a87dc0c66136e66945196ba2475990d8a0c3a25b b05e6b8ad4d69abf74aa3be3c0ee40ae07d66e1895b9ab09285a2f1192d562d2 7beb282184baadd08f166f16dd683b39cab53816ed81e6955def951cb2ddad1ec184e206746fd82bda075af03711d3d5658fc84a76196b0fa8d1ebc92ef9f30bb05e6b8ad4d69abf74aa3be3c0ee40ae07d66e1895b9ab09285a2f1192d562d2
62e935ae755f3d48f80d4d59f6121358c435722a67e859cc0caa8b539027f2ff 4d57d97a68f555696620a6d849c0ce582568518d729eb753dc7c732de2804510 ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff 9b6f41540c9b95b4b7b281c3042fa9c54cef43c842d62ea3fd6030fcb66e70b3e80d49d44c29d1635da9348d02ec93f3ed1ef227dfb59a07b580095c2b82f80f9d16ca518aa0c2b707f2b2a609edeca73bca8dd59817a633f35574ac6fd80d00
62e935ae755f3d48f80d4d59f6121358c435722a67e859cc0caa8b539027f2ff d511fe78e23934b3dadb52fcd022974b80bd92bccc7c5cf404e46cc0a8a2f5cd b26c1f87c13fc1da14997f1b5a71995dff8fbe0a62fae8473c7bdbd05bfb607d 305aaa3ac25e98f651427688b3fc43fe7d8a68a7ec1d7d61c61517c519bd4a427c3015599d83ca28b4c652333920223844ef0725eb5dc2febfd6af7677b73f01d0852a29b460fc92ec943242ac638a053bbacc200512b18b30d15083cbdc9282
62e935ae755f3d48f80d4d59f6121358c435722a67e859cc0caa8b539027f2ff 6e1fde9cf9e2359a87420b65a87dc0c66136e66945196ba2475990d8a0c3a25b b05e6b8ad4d69abf74aa3be3c0ee40ae07d66e1895b9ab09285a2f1192d562d2 ee3c7644fd8070532bc1fde3d70d742267da545d8c8f03e63bda63f1ad4214f4d2c4bfdb4eb9526def42deeb7e31602a6ff99eba893e0a4ad4d45892ca75e608d2b75e24a189a7f78ca776ba36fc53f6c3e31c32f251f2c524f0a44202f2902d
";

const JOE: &str = "4d57d97a68f555696620a6d849c0ce582568518d729eb753dc7c732de2804510";
const JOES_KEY: &str = "1adfc8bfe1d35616e64dffbd900096f23b066f914c8c2ffbb66f6075b96e116d";
const ANN: &str = "d511fe78e23934b3dadb52fcd022974b80bd92bccc7c5cf404e46cc0a8a2f5cd";
const STRANGER: &str = "6e1fde9cf9e2359a87420b65a87dc0c66136e66945196ba2475990d8a0c3a25b";
/// A key that several principals share.
const SHARED: &str = "0101010101010101010101010101010101010101010101010101010101010101";
const CHANNEL: &str = "62e935ae755f3d48f80d4d59f6121358c435722a67e859cc0caa8b539027f2ff";

const NOT_VALID: &str = "the authid or its credentials are not valid";

fn public(seed: &str) -> String {
    key(seed).public_hexadecimal()
}

fn holder(seeds: &[&str], role: Option<&str>, realm: Option<&str>) -> KeyHolder {
    let keys = seeds.iter().map(|seed| PublicKey::parse(&public(seed)));
    KeyHolder {
        keys: keys.collect::<Result<_, _>>().expect("are keys"),
        role: role.map(Into::into),
        realm: realm.map(str::to_owned),
    }
}

fn methods(error_texts: ErrorTexts) -> Methods {
    let mut principals = KeyHolders::default();
    principals.insert("joe", holder(&[JOE], Some("user"), None));
    principals.insert("ann", holder(&[ANN, SHARED], None, Some("realm2")));
    principals.insert("bob", holder(&[SHARED], None, None));
    Methods {
        cryptosign: Some(Cryptosign::Static {
            principals: Arc::new(principals),
            default_role: Some("member".into()),
        }),
        error_texts,
        ..Methods::default()
    }
}

fn dynamic() -> Methods {
    Methods {
        cryptosign: Some(Cryptosign::Dynamic(Authenticator {
            procedure: "com.auth".into(),
            authprovider: Provider::Dynamic,
            realm: None,
            role: "trusted".into(),
            default_role: None,
            timeout: Duration::from_secs(5),
        })),
        ..Methods::default()
    }
}

/// A HELLO with that `authextra`.
fn hello(words: &str, extra: &str) -> String {
    format!("> hello methods=cryptosign {words} extra={{{extra}}}\n")
}

fn pubkey(seed: &str) -> String {
    format!("\"pubkey\":\"{}\"", public(seed))
}

const CHALLENGE: &str = "< challenge cryptosign {\"channel_binding\":null}\n";

fn refused(cause: &str, text: &str) -> String {
    format!("< refuse wamp.error.not_authorized ({cause}): {text}")
}

/// Each signature is reproduced exactly, and admits a client that was sent that challenge.
#[test]
fn the_vectors_of_the_specification() {
    let rows = VECTORS.lines().filter(|line| !line.is_empty());
    let mut count = 0;
    for row in rows {
        let mut words = row.split(' ');
        let mut word = || words.next().expect("four words in a row");
        let [channel, seed, challenge, signature] = [word(), word(), word(), word()];
        let mut given = GIVEN;
        given.chance[20..52].copy_from_slice(&bytes(challenge));
        let bound = (channel != "-").then(|| bytes(channel));
        let over = Channel {
            is_tls: bound.is_some(),
            tls_exporter: bound,
            ..Channel::default()
        };
        let mut principals = KeyHolders::default();
        principals.insert("joe", holder(&[seed], Some("user"), None));
        let methods = Methods {
            cryptosign: Some(Cryptosign::Static {
                principals: Arc::new(principals),
                default_role: None,
            }),
            ..Methods::default()
        };
        let binding = match bound {
            Some(_) => "\"tls-exporter\"",
            None => "null",
        };
        let id = channel.trim_start_matches('-');
        for proof in [
            format!("authenticate {signature}"),
            format!("sign25519 {seed} {id}"),
        ] {
            let extra = format!("{},\"channel_binding\":{binding}", pubkey(seed));
            let text = format!(
                "{}< challenge cryptosign {{\"channel_binding\":{binding}}}
                 > {}
                 < accept realm1 joe user cryptosign static {{}}",
                hello("", &extra),
                proof.trim_end()
            );
            check_over(&methods, given, over, &text);
        }
        count += 1;
    }
    assert_eq!(count, 6);
    assert_eq!(public(JOE), JOES_KEY);
}

#[test]
fn configured_keys_admit_their_principals() {
    let methods = methods(ErrorTexts::Neutral);
    for (words, seed, outcome) in [
        (
            "authid=joe",
            JOE,
            "accept realm1 joe user cryptosign static {}",
        ),
        ("", JOE, "accept realm1 joe user cryptosign static {}"),
        ("", ANN, "accept realm2 ann member cryptosign static {}"),
        (
            "authid=ann",
            SHARED,
            "accept realm2 ann member cryptosign static {}",
        ),
        (
            "authid=bob",
            SHARED,
            "accept realm1 bob member cryptosign static {}",
        ),
    ] {
        let hello = hello(words, &pubkey(seed));
        check(
            &methods,
            &format!("{hello}{CHALLENGE}> sign25519 {seed}\n< {outcome}"),
        );
        let upper = hello.replace(&public(seed), &public(seed).to_uppercase());
        check(
            &methods,
            &format!("{upper}{CHALLENGE}> sign25519 {seed}\n< {outcome}"),
        );
    }
}

/// The cache of decoded points changes neither the outcome of a login nor the equality of configurations.
#[test]
fn cached_points_change_nothing() {
    let used = methods(ErrorTexts::Neutral);
    let hello = hello("authid=joe", &pubkey(JOE));
    let joined = "< accept realm1 joe user cryptosign static {}";
    let refused = refused("wrong_signature", NOT_VALID);
    for (proof, outcome) in [
        (ANN, &*refused),
        (JOE, joined),
        (JOE, joined),
        (ANN, &refused),
        (JOE, joined),
    ] {
        check(
            &used,
            &format!("{hello}{CHALLENGE}> sign25519 {proof}\n{outcome}"),
        );
    }
    assert_eq!(used, methods(ErrorTexts::Neutral));
}

/// A refused client learns only at the last step, and not from its text, that it is refused; never which principals and
/// keys exist.
#[test]
fn refused_clients_are_challenged_like_others() {
    let methods = methods(ErrorTexts::Neutral);
    for (words, seed, proof, cause, text) in [
        ("authid=zed", JOE, JOE, "unknown_principal", NOT_VALID),
        ("authid=joe", ANN, ANN, "unknown_key", NOT_VALID),
        ("", STRANGER, STRANGER, "unknown_key", NOT_VALID),
        ("authid=joe", JOE, ANN, "wrong_signature", NOT_VALID),
        ("authid=zed", JOE, ANN, "wrong_signature", NOT_VALID),
        ("", SHARED, JOE, "wrong_signature", NOT_VALID),
        (
            "",
            SHARED,
            SHARED,
            "ambiguous_key",
            "cannot infer client identity from pubkey: multiple authids in principal database have this pubkey",
        ),
    ] {
        let hello = hello(words, &pubkey(seed));
        let refused = refused(cause, text);
        check(
            &methods,
            &format!("{hello}{CHALLENGE}> sign25519 {proof}\n{refused}"),
        );
    }
}

#[test]
fn crossbars_words() {
    let methods = methods(ErrorTexts::Crossbar);
    for (words, extra, cause, text) in [
        (
            "authid=zed",
            pubkey(JOE),
            "unknown_principal",
            "no principal with authid \"zed\" exists",
        ),
        (
            "authid=joe",
            pubkey(ANN),
            "unknown_key",
            "extra.pubkey provided does not match any one of authorized_keys for the principal",
        ),
        (
            "",
            pubkey(STRANGER),
            "unknown_key",
            "cannot identify client: no authid requested and no principal found for provided extra.pubkey",
        ),
        (
            "",
            pubkey(SHARED),
            "ambiguous_key",
            "cannot infer client identity from pubkey: multiple authids in principal database have this pubkey",
        ),
        (
            "",
            String::new(),
            "malformed_extra",
            "cannot identify client: no authid requested and no extra.pubkey provided",
        ),
    ] {
        check(
            &methods,
            &format!("{}{}", hello(words, &extra), refused(cause, text)),
        );
    }
    for (proof, text) in [
        (
            "sign25519 ".to_owned() + ANN,
            "signed message has invalid signature",
        ),
        (
            "authenticate 00".to_owned(),
            "signed message is invalid (not a HEX encoded string of 96 bytes)",
        ),
        (
            format!("authenticate {}", "0".repeat(192)),
            "message signed is bogus",
        ),
    ] {
        let hello = hello("authid=joe", &pubkey(JOE));
        let refused = refused("wrong_signature", text);
        check(&methods, &format!("{hello}{CHALLENGE}> {proof}\n{refused}"));
    }
}

#[test]
fn malformed_extras_of_hello() {
    let methods = methods(ErrorTexts::Neutral);
    let digits = "expected 64 hexadecimal digits";
    let small = "not usable as a key: signatures for it need no secret (a point of small order)";
    let certificates = "Ethereum certificates are not supported, a client is identified by its key";
    let joe = pubkey(JOE);
    for (extra, key, text) in [
        (
            String::new(),
            "pubkey",
            "expected 64 hexadecimal digits, which authmethod cryptosign needs",
        ),
        ("\"pubkey\":\"\"".to_owned(), "pubkey", digits),
        ("\"pubkey\":17".to_owned(), "pubkey", digits),
        (
            format!("\"pubkey\":\"{}\"", &JOES_KEY[1..]),
            "pubkey",
            digits,
        ),
        (format!("\"pubkey\":\"{JOES_KEY}0\""), "pubkey", digits),
        (
            format!("\"pubkey\":\"{}g\"", &JOES_KEY[1..]),
            "pubkey",
            digits,
        ),
        (
            format!("\"pubkey\":\"{}\"", "0".repeat(64)),
            "pubkey",
            small,
        ),
        (format!("{joe},\"challenge\":\"ff\""), "challenge", digits),
        (format!("{joe},\"challenge\":[1]"), "challenge", digits),
        (
            format!("{joe},\"channel_binding\":1"),
            "channel_binding",
            "expected text",
        ),
        (
            format!("{joe},\"trustroot\":\"0x72b3\""),
            "trustroot",
            certificates,
        ),
        (
            format!("{joe},\"certificates\":[[1]]"),
            "certificates",
            certificates,
        ),
        (
            format!("{joe},\"challenge\":\"{JOE}\""),
            "challenge",
            "this router has no key of its own to sign it with",
        ),
    ] {
        let text = format!("HELLO.Details.authextra.{key}: {text}");
        let refused = refused("malformed_extra", &text);
        check(&methods, &(hello("authid=joe", &extra) + &refused));
    }
    let words = hello(
        "authid=joe",
        &format!("{joe},\"trustroot\":null,\"certificates\":[]"),
    );
    check(&methods, &(words + CHALLENGE));
}

#[test]
fn malformed_and_wrong_signatures() {
    let methods = methods(ErrorTexts::Neutral);
    let digits = "expected 192 hexadecimal digits, the signature and then the signed message";
    let other = "the signed message is not the challenge, combined with the channel's id if one was requested";
    let joe = key(JOE);
    let good = joe.sign(&[7; 32]);
    let replayed = joe.sign(&[8; 32]);
    let (signature, message) = good.split_at(128);
    for (proof, text) in [
        (String::new(), Some(digits)),
        (signature.to_owned(), Some(digits)),
        (good[..191].to_owned(), Some(digits)),
        (format!("{good}0"), Some(digits)),
        (format!("{}g", &good[..191]), Some(digits)),
        (format!("+{}", &good[1..]), Some(digits)),
        (replayed.clone(), Some(other)),
        (format!("{}{message}", &replayed[..128]), None),
        (format!("{signature}{}", &replayed[128..]), Some(other)),
        (format!("{}{message}", "0".repeat(128)), None),
        (malleable(signature) + message, None),
    ] {
        let hello = hello("authid=joe", &pubkey(JOE));
        let text = text.map_or_else(
            || NOT_VALID.to_owned(),
            |t| format!("AUTHENTICATE.Signature: {t}"),
        );
        let refused = refused("wrong_signature", &text);
        check(
            &methods,
            &format!("{hello}{CHALLENGE}> authenticate {proof}\n{refused}"),
        );
        // Malformed signatures get the same text for known and unknown principals.
        let unknown = hello.replace("authid=joe", "authid=zed");
        check(
            &methods,
            &format!("{unknown}{CHALLENGE}> authenticate {proof}\n{refused}"),
        );
    }
    let upper = good.to_uppercase();
    let hello = hello("authid=joe", &pubkey(JOE));
    check(
        &methods,
        &format!(
            "{hello}{CHALLENGE}> authenticate {upper}\n< accept realm1 joe user cryptosign static {{}}"
        ),
    );
}

/// The same signature with the order of the group added to its second half, which satisfies the equation as well.
fn malleable(signature: &str) -> String {
    const ORDER: &str = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
    let (order, scalar) = (bytes(ORDER), bytes(&signature[64..]));
    let mut carry = 0;
    let sums = order.iter().zip(scalar).map(|(of, byte)| {
        carry += u16::from(*of) + u16::from(byte);
        let low = (carry & 0xff) as u8;
        carry >>= 8;
        low
    });
    let digits: String = sums.map(|byte| format!("{byte:02x}")).collect();
    signature[..64].to_owned() + &digits
}

/// Signatures for such a key need no secret, so configurations must not contain one.
#[test]
fn points_of_small_order_are_refused() {
    for (digits, is_key) in [
        (JOES_KEY, true),
        (
            "0000000000000000000000000000000000000000000000000000000000000000",
            false,
        ),
        (
            "0000000000000000000000000000000000000000000000000000000000000080",
            false,
        ),
        (
            "0100000000000000000000000000000000000000000000000000000000000000",
            false,
        ),
        (
            "0100000000000000000000000000000000000000000000000000000000000080",
            false,
        ),
        (
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            false,
        ),
        (
            "26E8958FC2B227B045C3F489F2EF98F0D5DFAC05D3C63339B13802886D53FC85",
            false,
        ),
        (
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            false,
        ),
        (
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
            false,
        ),
        (
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            false,
        ),
        (
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            false,
        ),
        (
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            false,
        ),
        (
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            false,
        ),
        (
            "0200000000000000000000000000000000000000000000000000000000000000",
            true,
        ),
    ] {
        assert_eq!(PublicKey::parse(digits).is_ok(), is_key, "{digits}");
    }
}

/// Without TLS, of TLS 1.2 and of TLS 1.3.
fn channels() -> [Channel<'static>; 3] {
    let known = [(false, None), (true, None), (true, Some(bytes(CHANNEL)))];
    known.map(|(is_tls, tls_exporter)| Channel {
        is_tls,
        tls_exporter,
        ..Channel::default()
    })
}

#[test]
fn channels_without_the_requested_id() {
    let methods = methods(ErrorTexts::Neutral);
    let [plain, tls12, tls13] = channels();
    let unique = "channel binding \"tls-unique\" requested, which TLS 1.3 lacks (RFC 9266) and the \
                  router's TLS library does not support for TLS 1.2: ask for \"tls-exporter\" over TLS 1.3";
    for (over, kind, text) in [
        (
            plain,
            "tls-unique",
            "channel binding \"tls-unique\" requested, but the transport has no TLS channel ID",
        ),
        (
            plain,
            "tls-exporter",
            "channel binding \"tls-exporter\" requested, but the transport has no TLS channel ID",
        ),
        (
            tls12,
            "tls-exporter",
            "channel binding \"tls-exporter\" requested, which the router supports over TLS 1.3 only",
        ),
        (tls12, "tls-unique", unique),
        (tls13, "tls-unique", unique),
        (
            tls13,
            "tls-server-end-point",
            "invalid channel binding type \"tls-server-end-point\" requested",
        ),
        (plain, "", "invalid channel binding type \"\" requested"),
    ] {
        let extra = format!("{},\"channel_binding\":\"{kind}\"", pubkey(JOE));
        let refused = refused("no_channel_binding", text);
        check_over(
            &methods,
            GIVEN,
            over,
            &(hello("authid=joe", &extra) + &refused),
        );
    }
}

#[test]
fn the_id_of_a_channel() {
    let methods = methods(ErrorTexts::Neutral);
    let [_, _, tls13] = channels();
    let extra = format!("{},\"channel_binding\":\"tls-exporter\"", pubkey(JOE));
    let asked = hello("authid=joe", &extra)
        + "< challenge cryptosign {\"channel_binding\":\"tls-exporter\"}\n";
    let accepted = "< accept realm1 joe user cryptosign static {}";
    check_over(
        &methods,
        GIVEN,
        tls13,
        &format!("{asked}> sign25519 {JOE} {CHANNEL}\n{accepted}"),
    );
    // A man in the middle has another channel on each side, so a forwarded signature is of the wrong channel.
    let other = "the signed message is not the challenge, combined with the channel's id if one was requested";
    let refused = refused(
        "wrong_signature",
        &format!("AUTHENTICATE.Signature: {other}"),
    );
    check_over(
        &methods,
        GIVEN,
        tls13,
        &format!("{asked}> sign25519 {JOE} {ANN}\n{refused}"),
    );
    check_over(
        &methods,
        GIVEN,
        tls13,
        &format!("{asked}> sign25519 {JOE}\n{refused}"),
    );
}

/// The router signs the client's challenge together with the channel's id.
#[test]
fn the_routers_own_proof() {
    let own = Arc::new(key(ANN));
    let methods = methods(ErrorTexts::Neutral);
    let asked = bytes(CHANNEL);
    for (binding, message) in [
        ("null", asked),
        ("\"tls-exporter\"", asked.map(|byte| byte ^ 5)),
    ] {
        let over = Channel {
            is_tls: true,
            tls_exporter: Some([5; 32]),
            own_key: Some(&own),
            ..Channel::default()
        };
        let extra = format!(
            "{},\"channel_binding\":{binding},\"challenge\":\"{CHANNEL}\"",
            pubkey(JOE)
        );
        let challenge = format!(
            "< challenge cryptosign {{\"channel_binding\":{binding},\"signature\":\"{}\",\"pubkey\":\"{}\"}}",
            own.sign(&message),
            own.public_hexadecimal()
        );
        check_over(&methods, GIVEN, over, &(hello("", &extra) + &challenge));
    }
}

#[test]
fn a_key_from_an_authenticator() {
    let extra = pubkey(JOE);
    let ask = format!(
        "{}< call com.auth in realm1 by trusted: realm1 None {{\"session\":1978051601041160,\"authmethod\":\"cryptosign\",\"authextra\":{{{extra}}},\"authid\":null,\"authrole\":null}}\n",
        hello("", &extra)
    );
    let failed = |text: &str| {
        format!("< refuse wamp.error.authentication_failed (authenticator_failed): {text}")
    };
    let answer =
        format!("> answer {{\"pubkey\":\"{JOES_KEY}\",\"role\":\"user\",\"authid\":\"joe\"}}\n");
    for rest in [
        format!(
            "{answer}{CHALLENGE}> sign25519 {JOE}\n< accept realm1 joe user cryptosign dynamic {{}}"
        ),
        format!(
            "{answer}{CHALLENGE}> sign25519 {ANN}\n{}",
            refused("wrong_signature", NOT_VALID)
        ),
        format!(
            "{}{}",
            answer.replace("\"role\":\"user\",", ""),
            "< refuse wamp.error.no_such_role (no_such_role): no authrole assigned"
        ),
        format!(
            "> answer {{\"role\":\"user\"}}\n{}",
            failed("got a principal without \"pubkey\" from the dynamic authenticator")
        ),
        format!(
            "> answer \"user\"\n{}",
            failed("got invalid return type \"text\" from dynamic authenticator")
        ),
        format!(
            "{}{}",
            answer.replace(JOES_KEY, "zz"),
            failed(
                "got a bad pubkey from the dynamic authenticator: expected 64 hexadecimal digits"
            )
        ),
        "> error com.example.no no\n< refuse com.example.no (authenticator_denied): no".to_owned(),
    ] {
        check(&dynamic(), &(ask.clone() + &rest));
    }
}

#[test]
fn nothing_secret_is_printed() {
    let own = SigningKey::from_seed(&bytes(JOE));
    assert_eq!(format!("{own:?}"), format!("SigningKey(of {JOES_KEY})"));
}
