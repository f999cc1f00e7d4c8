//! JetStream's answers, as functions of bytes.

use std::fmt;

use serde_json::Value as Json;

use crate::message::Message;

/// Why the server has refused a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP-like status.
    pub code: u64,
    /// JetStream's error number.
    pub number: u64,
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.number)
    }
}

/// The last message is not the expected one: two numbers, for a check by one server and by a group.
pub const WRONG_LAST_SEQUENCE: [u64; 2] = [10_071, 10_164];

/// The stream does not exist.
pub const NO_STREAM: u64 = 10_059;

/// The stream exists with another configuration.
pub const STREAM_NAME_IN_USE: u64 = 10_058;

/// The expected part that an answer lacks.
pub type Wrong = &'static str;

/// Decodes an answer: its object, or the problem in it.
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

/// A stream's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamInfo {
    /// Its creation time, in the server's format: another stream of that name has another time.
    pub created: String,
    pub first: u64,
    pub last: u64,
    pub messages: u64,
    pub bytes: u64,
    pub replicas: u64,
    pub storage: String,
    pub retention: String,
    /// In nanoseconds; 0 means no limit.
    pub max_age: u64,
    pub max_bytes: i64,
    pub is_purge_denied: bool,
    /// The leading server, in a cluster.
    pub leader: Option<String>,
    /// Number of followers that are up to date.
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

/// A message of a stream from a direct get, or why none follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    Entry {
        sequence: u64,
        payload: Vec<u8>,
    },
    /// The end of the requested messages.
    End,
    /// No message exists.
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
