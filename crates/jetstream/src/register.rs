//! Keys with values: a stream that keeps each subject's last message, read from its leader, and written only if
//! unchanged.
//!
//! A read may be outdated if its leader has been replaced without knowing; a write based on it then fails. A key may
//! have a time to live, after which it does not exist.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::answer;
use crate::connection::Connection;
use crate::failed::Failed;
use crate::stream::{Stream, StreamConfig};

/// Keys with values.
#[derive(Clone)]
pub struct Register {
    stream: Stream,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// Written with that sequence.
    Done(u64),
    /// The key's last value is not the expected one.
    Refused,
}

/// The subject has no message.
const NO_MESSAGE: u64 = 10_037;

impl Register {
    pub fn new(connection: Connection, name: &str) -> Self {
        Self {
            stream: Stream::new(connection, name),
        }
    }

    /// Creates it with that many replicas; an existing one is used as it is.
    pub async fn create(&self, subjects: &str, replicas: u8) -> Result<(), Failed> {
        let more = json!({"max_msgs_per_subject": 1, "allow_msg_ttl": true});
        let config = StreamConfig {
            subjects: vec![subjects.to_owned()],
            replicas,
            more: more.as_object().cloned().unwrap_or_default(),
        };
        match self.stream.create(&config).await {
            Err(Failed::Refused(problem)) if problem.number == answer::STREAM_NAME_IN_USE => Ok(()),
            created => created.map(drop),
        }
    }

    /// A key's value and sequence, from the stream's leader.
    pub async fn get(&self, key: &str) -> Result<Option<(u64, Vec<u8>)>, Failed> {
        let question = json!({"last_by_subj": key});
        let answer = match self.stream.ask("STREAM.MSG.GET", &question).await {
            Err(Failed::Refused(problem)) if problem.number == NO_MESSAGE => return Ok(None),
            answer => answer?,
        };
        let message = &answer["message"];
        let sequence = message["seq"].as_u64().ok_or(Failed::Answer("seq"))?;
        let value = message["data"].as_str().unwrap_or_default();
        let value = STANDARD.decode(value).map_err(|_| Failed::Answer("data"))?;
        Ok(Some((sequence, value)))
    }

    /// Whether there is no stream, or no JetStream; `false` also without an answer.
    pub async fn is_missing(&self, key: &str) -> bool {
        match self.get(key).await {
            Err(Failed::Refused(problem)) => problem.number == answer::NO_STREAM,
            Err(failed) => failed == Failed::Nobody,
            Ok(_) => false,
        }
    }

    /// Writes a key whose last value has that sequence; 0 for a new key. After an error the write may have succeeded.
    pub async fn put(
        &self,
        key: &str,
        after: u64,
        value: &[u8],
        time_to_live: Option<Duration>,
    ) -> Result<Put, Failed> {
        let after = after.to_string();
        let seconds = time_to_live.map(|time| format!("{}s", time.as_secs().max(1)));
        let mut fields = vec![
            ("Nats-Expected-Last-Subject-Sequence", after.as_str()),
            ("Nats-Expected-Stream", &self.stream.name),
        ];
        fields.extend(seconds.as_deref().map(|seconds| ("Nats-TTL", seconds)));
        let stream = &self.stream;
        let answer = stream.connection.request(key, &fields, value, stream.time);
        match answer::decode(&answer.await?.payload).map_err(Failed::Answer)? {
            Ok(answer) => {
                let sequence = answer["seq"].as_u64();
                sequence.map(Put::Done).ok_or(Failed::Answer("seq"))
            }
            Err(problem) if answer::WRONG_LAST_SEQUENCE.contains(&problem.number) => {
                Ok(Put::Refused)
            }
            Err(problem) => Err(Failed::Refused(problem)),
        }
    }

    /// Sets the timeout of answers.
    pub fn wait(&mut self, time: Duration) {
        self.stream.time = time;
    }
}
