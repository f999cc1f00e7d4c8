//! What JetStream answers, as functions of bytes.

use std::fmt;

use serde_json::Value as Json;

use crate::message::Message;

/// Why the server has not done what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// As HTTP numbers them.
    pub code: u64,
    /// What it is, as JetStream numbers them.
    pub number: u64,
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.number)
    }
}

/// The last message is not the one that was expected: two numbers for what a server knows alone, and what it finds
/// with others.
pub const WRONG_LAST_SEQUENCE: [u64; 2] = [10_071, 10_164];

/// There is no such stream.
pub const NO_STREAM: u64 = 10_059;

/// There is one, which is otherwise.
pub const STREAM_NAME_IN_USE: u64 = 10_058;

/// What an answer is wrong in.
pub type Wrong = &'static str;

/// An answer, or the problem that it tells of.
pub fn decode(payload: &[u8]) -> Result<Result<Json, Problem>, Wrong> {
    let json: Json = serde_json::from_slice(payload).map_err(|_| "object of JSON")?;
    if !json.is_object() {
        return Err("object of JSON");
    }
    let error = &json["error"];
    if error.is_null() {
        return Ok(Ok(json));
    }
    let number = |key: &str| error[key].as_u64().unwrap_or_default();
    Ok(Err(Problem {
        code: number("code"),
        number: number("err_code"),
        text: error["description"].as_str().unwrap_or_default().to_owned(),
    }))
}

/// What a stream says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamInfo {
    /// When it was made, as the server writes it: another stream of that name has another time.
    pub created: String,
    pub first: u64,
    pub last: u64,
    pub messages: u64,
    pub bytes: u64,
    pub replicas: u64,
    pub storage: String,
    pub retention: String,
    /// In nanoseconds; 0: no age is too old.
    pub max_age: u64,
    pub max_bytes: i64,
    pub is_purge_denied: bool,
    /// Of the server that leads it, where there are several.
    pub leader: Option<String>,
    /// Servers that follow it and are as far.
    pub current: usize,
    /// Its subjects.
    pub subjects: Vec<String>,
}

impl StreamInfo {
    pub fn read(json: &Json) -> Result<Self, Wrong> {
        let (config, state, cluster) = (&json["config"], &json["state"], &json["cluster"]);
        let number = |key: &str| state[key].as_u64();
        let word = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let replicas = cluster["replicas"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let current = |replica: &&Json| replica["current"].as_bool() == Some(true);
        let subjects = config["subjects"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Self {
            created: word(&json["created"]),
            first: number("first_seq").ok_or("first_seq")?,
            last: number("last_seq").ok_or("last_seq")?,
            messages: number("messages").ok_or("messages")?,
            bytes: number("bytes").unwrap_or_default(),
            replicas: config["num_replicas"].as_u64().unwrap_or(1),
            storage: word(&config["storage"]),
            retention: word(&config["retention"]),
            max_age: config["max_age"].as_u64().unwrap_or_default(),
            max_bytes: config["max_bytes"].as_i64().unwrap_or(-1),
            is_purge_denied: config["deny_purge"].as_bool() == Some(true),
            leader: cluster["leader"].as_str().map(str::to_owned),
            current: replicas.iter().filter(current).count(),
            subjects: subjects.iter().map(word).collect(),
        })
    }
}

/// A message of a stream as a direct get gives it, or why there is none behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    Entry {
        sequence: u64,
        payload: Vec<u8>,
    },
    /// That was all that was asked for.
    End,
    /// There is none.
    Nothing,
}

impl Got {
    pub fn read(message: Message) -> Result<Self, Wrong> {
        match message.status() {
            None => Ok(Self::Entry {
                sequence: message.number("Nats-Sequence").ok_or("Nats-Sequence")?,
                payload: message.payload,
            }),
            Some(204) => Ok(Self::End),
            Some(404) => Ok(Self::Nothing),
            Some(_) => Err("message of the stream"),
        }
    }
}
