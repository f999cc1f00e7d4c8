//! A handshake as lines of text: inputs begin with `>`, outputs with `<`.
//!
//! ```text
//! > hello authid=joe methods=ticket          HELLO to realm1
//! < challenge ticket {}
//! > authenticate hunter2
//! < accept realm1 joe user ticket static {}
//! ```
//!
//! Other inputs: `answer VALUE` and `error URI TEXT`, of an authenticator; `unanswered`; `key`, the requested key,
//! derived; `keys JWKS`, fetched keys; `sign KEY`, AUTHENTICATE with a signature of the challenge, `sign25519 SEED
//! [CHANNEL]` with one by the Ed25519 key of a seed; `prove READING c=BINDING PASSWORD EXTRA`, AUTHENTICATE with a
//! proof of SCRAM, and before it `name NAME`, its authid in another encoding. Values are JSON.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosstie_auth::wamp::jwt::Jwks;
use crosstie_auth::wamp::scram::{AuthMessage, Function, Kdf, Reading};
use crosstie_auth::wamp::{
    Answer, Channel, Derivation, Given, Handshake, Hello, Key, Methods, SigningKey, Step,
    Unanswered,
};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, Serializer, Value};

pub(crate) struct Script<'m> {
    methods: &'m Methods,
    given: Given,
    channel: Channel<'m>,
    handshake: Option<Box<Handshake>>,
    challenge: String,
    /// The authid in the client's encoding.
    name: String,
    client_nonce: String,
    /// The expected proof of the router; shown as an ellipsis.
    verifier: String,
    /// CHALLENGE's extra.
    extra: Dict,
    derivation: Option<Derivation>,
}

/// 2014-06-22T16:36:25.448Z.
pub(crate) const GIVEN: Given = Given {
    unix_ms: 1_403_454_985_448,
    chance: [7; Given::CHANCE_BYTES],
};

/// Plays the inputs of `text` and compares the result with `text`.
pub(crate) fn check(methods: &Methods, text: &str) {
    check_over(methods, GIVEN, Channel::default(), text);
}

/// The same, over another connection and at another time.
pub(crate) fn check_over(methods: &Methods, given: Given, channel: Channel<'_>, text: &str) {
    let mut script = Script {
        methods,
        given,
        channel,
        handshake: None,
        challenge: String::new(),
        name: String::new(),
        client_nonce: String::new(),
        verifier: String::new(),
        extra: Dict::new(),
        derivation: None,
    };
    let mut found = String::new();
    let lines: Vec<_> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    for input in lines.iter().filter_map(|line| line.strip_prefix("> ")) {
        if let Some(name) = input.strip_prefix("name ") {
            script.name = name.to_owned();
            let _ = writeln!(found, "> {input}");
            continue;
        }
        let step = script.input(input);
        let _ = writeln!(found, "> {input}\n< {}", script.shown(step));
    }
    let wanted = lines.join("\n");
    assert_eq!(found.trim_end(), wanted, "\n{found}");
}

pub(crate) fn value(json: &str) -> Value {
    codec::decode_value(Serializer::Json, json.as_bytes(), &Limits::default()).expect("is JSON")
}

impl Script<'_> {
    fn input(&mut self, input: &str) -> Option<Step> {
        let (verb, rest) = input.split_once(' ').unwrap_or((input, ""));
        let methods = self.methods;
        if verb == "hello" {
            let (realm, details) = hello(rest);
            let hello = match Hello::read(&realm, &details) {
                Ok(hello) => hello,
                Err(e) => panic!("{e}"),
            };
            self.name = hello.authid.unwrap_or_default().to_owned();
            let extra = hello.authextra.map_or(&[][..], Vec::as_slice);
            self.client_nonce = text(extra, "nonce").to_owned();
            let (handshake, step) = Handshake::begin(methods, hello, &self.given, &self.channel);
            self.handshake = handshake;
            return Some(step);
        }
        if verb == "prove" {
            return self.prove(rest);
        }
        let handshake = self.handshake.as_mut().expect("has begun");
        match verb {
            "authenticate" => handshake.handle_authenticate(rest, &Dict::new()),
            "sign" => {
                let signature = Key::new(rest).sign(&self.challenge);
                handshake.handle_authenticate(&signature, &Dict::new())
            }
            "sign25519" => {
                let (seed, channel) = rest.split_once(' ').unwrap_or((rest, ""));
                let signature = sign25519(seed, &self.challenge, channel);
                handshake.handle_authenticate(&signature, &Dict::new())
            }
            "answer" => Some(handshake.handle_answer(Answer::Value(value(rest)))),
            "error" => {
                let (uri, text) = rest.split_once(' ').expect("a URI and a text");
                let (uri, text) = (uri.to_owned(), text.to_owned());
                Some(handshake.handle_answer(Answer::Error { uri, text }))
            }
            "unanswered" => {
                let timeout = Unanswered::Timeout { timeout_ms: 5_000 };
                Some(handshake.handle_answer(Answer::Unanswered(timeout)))
            }
            "key" => {
                let derivation = self.derivation.take().expect("was asked for");
                Some(handshake.handle_key(derivation.derive()))
            }
            "keys" => Some(handshake.handle_keys(Jwks::parse(rest).expect("are keys").into())),
            other => panic!("{other} is no input"),
        }
    }

    fn prove(&mut self, words: &str) -> Option<Step> {
        let mut words = words.splitn(4, ' ');
        let mut next = || words.next().unwrap_or_default();
        let reading = match next() {
            "autobahn" => Reading::Autobahn,
            _ => Reading::Specification,
        };
        let binding = next().strip_prefix("c=").expect("c=BINDING");
        let password = next();
        let extra = match next() {
            "" => Value::Dict(Dict::new()),
            json => value(json),
        };
        let number = |key| {
            let found = self.extra.iter().find(|(name, _)| name == key);
            let number = found.and_then(|(_, value)| value.as_u64());
            number.and_then(|number| u32::try_from(number).ok())
        };
        let kdf = Kdf {
            function: Function::parse(text(&self.extra, "kdf")).expect("is known"),
            iterations: number("iterations").expect("is there"),
            memory_kib: number("memory"),
        };
        let salt = STANDARD
            .decode(text(&self.extra, "salt"))
            .expect("is Base64");
        let salted = kdf.derive(password, &salt, reading).expect("can be done");
        let message = AuthMessage {
            name: &self.name,
            client_nonce: &self.client_nonce,
            nonce: text(&self.extra, "nonce"),
            salt: text(&self.extra, "salt"),
            iterations: kdf.iterations,
            binding,
        };
        self.verifier = salted.keys().verifier(&message.to_string());
        let proof = salted.prove(&message);
        let handshake = self.handshake.as_mut().expect("has begun");
        handshake.handle_authenticate(&proof, extra.as_dict().expect("is a dictionary"))
    }

    fn shown(&mut self, step: Option<Step>) -> String {
        match step {
            None => "not due".to_owned(),
            Some(Step::Accept(p)) => format!(
                "accept {} {} {} {} {} {}",
                p.realm,
                p.authid,
                p.authrole,
                p.authmethod,
                p.authprovider.name(),
                match self.verifier.is_empty() {
                    true => json(&p.authextra),
                    false => json(&p.authextra).replace(&self.verifier, "…"),
                },
            ),
            Some(Step::Challenge { method, extra }) => {
                let challenge = extra.iter().find(|(key, _)| key == "challenge");
                if let Some((_, Value::String(challenge))) = challenge {
                    self.challenge.clone_from(challenge);
                }
                self.extra.clone_from(&extra);
                let rest = extra.into_iter().filter(|(key, _)| key != "challenge");
                format!("challenge {method} {}", json(&rest.collect()))
            }
            Some(Step::Call(call)) => format!(
                "call {} in {} by {}: {} {:?} {}",
                call.authenticator.procedure,
                call.authenticator.realm.as_deref().unwrap_or(&call.realm),
                call.authenticator.role,
                call.realm,
                call.authid.as_deref(),
                json(&call.details),
            ),
            Some(Step::Derive(derivation)) => {
                self.derivation = Some(*derivation);
                "derive".to_owned()
            }
            Some(Step::Fetch) => "fetch".to_owned(),
            Some(Step::Refuse(refusal)) => format!(
                "refuse {} ({}): {}",
                refusal.reason,
                refusal.cause.name(),
                refusal.text
            ),
        }
    }
}

/// A text of a dictionary; empty if absent.
fn text<'d>(dict: &'d [(String, Value)], key: &str) -> &'d str {
    let found = dict.iter().find(|(name, _)| name == key);
    found
        .and_then(|(_, value)| value.as_str())
        .unwrap_or_default()
}

/// `realm=… authid=… authrole=… methods=a,b extra={…}`.
fn hello(words: &str) -> (String, Dict) {
    let mut realm = "realm1".to_owned();
    let mut details = Dict::new();
    for word in words.split_whitespace() {
        let (key, text) = word.split_once('=').expect("key=value");
        match key {
            "realm" => realm = text.to_owned(),
            "methods" => {
                let methods = text.split(',').filter(|m| !m.is_empty()).map(Value::from);
                details.push(("authmethods".to_owned(), Value::List(methods.collect())));
            }
            "extra" => details.push(("authextra".to_owned(), value(text))),
            key => details.push((key.to_owned(), Value::from(text))),
        }
    }
    (realm, details)
}

fn json(dict: &Dict) -> String {
    let mut out = Vec::new();
    let value = Value::Dict(dict.clone());
    codec::encode_value(&value, Serializer::Json, &mut out).expect("can be written");
    String::from_utf8(out).expect("is text")
}

/// The answer of a client with the key of that seed and that channel id.
fn sign25519(seed: &str, challenge: &str, channel: &str) -> String {
    let mut message = bytes(challenge);
    if !channel.is_empty() {
        message
            .iter_mut()
            .zip(bytes(channel))
            .for_each(|(byte, of)| *byte ^= of);
    }
    key(seed).sign(&message)
}

/// The Ed25519 key of a seed.
pub(crate) fn key(seed: &str) -> SigningKey {
    SigningKey::from_seed(&bytes(seed))
}

/// 32 bytes by their digits.
pub(crate) fn bytes(digits: &str) -> [u8; 32] {
    let digit =
        |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("is a digit");
    assert_eq!(digits.len(), 64, "{digits}");
    std::array::from_fn(digit)
}
