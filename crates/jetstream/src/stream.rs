//! JetStream's streams: create, inspect, append, read, purge, delete.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use crate::answer::{self, Got, StreamInfo};
use crate::connection::Connection;
use crate::failed::Failed;

/// A stream by its name.
#[derive(Clone, Debug)]
pub struct Stream {
    pub connection: Connection,
    pub name: String,
    /// Timeout of answers.
    pub time: Duration,
}

/// The configuration of a stream: in files, without limits of age or size.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    pub subjects: Vec<String>,
    /// Number of servers with a copy.
    pub replicas: u8,
    /// Further settings, by the server's names.
    pub more: Map<String, Json>,
}

/// The result of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Append {
    /// Appended with that sequence.
    Appended(u64),
    /// The last message is not the expected one.
    Refused,
}

/// Consecutive entries; purged ones may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// With their sequences.
    pub entries: Vec<(u64, Vec<u8>)>,
}

/// Bytes per entry that a server reads ahead, beside the requested ones.
const ENTRY_BYTES: usize = 1024;

impl Stream {
    pub fn new(connection: Connection, name: &str) -> Self {
        Self {
            connection,
            name: name.to_owned(),
            time: ANSWER_TIME,
        }
    }

    /// Creates it; does nothing if it exists with this configuration.
    pub async fn create(&self, config: &StreamConfig) -> Result<StreamInfo, Failed> {
        let StreamConfig {
            subjects,
            replicas,
            more,
        } = config;
        let mut wanted = json!({
            "name": self.name,
            "subjects": subjects,
            "num_replicas": replicas,
            "storage": "file",
            "retention": "limits",
            "discard": "new",
            "max_age": 0,
            "allow_direct": true,
        });
        for (key, value) in more {
            wanted[key] = value.clone();
        }
        let answer = self.ask("STREAM.CREATE", &wanted).await?;
        StreamInfo::read(&answer).map_err(Failed::Answer)
    }

    /// The state from its leader; `None` if the stream does not exist.
    pub async fn info(&self) -> Result<Option<StreamInfo>, Failed> {
        let subject = self.api("STREAM.INFO");
        let answer = self
            .connection
            .request_until(&subject, b"{}", ASK_AGAIN, self.time);
        match answer::decode(&answer.await?.payload).map_err(Failed::Answer)? {
            Ok(answer) => StreamInfo::read(&answer).map(Some).map_err(Failed::Answer),
            Err(problem) if problem.number == answer::NO_STREAM => Ok(None),
            Err(problem) => Err(Failed::Refused(problem)),
        }
    }

    /// Appends after an expected last message. It is sent at once, so that appends are sent in the order of the calls;
    /// the result is awaited. After an error the append may have succeeded.
    pub fn append(
        &self,
        subject: &str,
        after: u64,
        payload: &[u8],
    ) -> impl Future<Output = Result<Append, Failed>> + Send + use<> {
        let after = after.to_string();
        let fields = [
            ("Nats-Expected-Last-Sequence", after.as_str()),
            ("Nats-Expected-Stream", &self.name),
        ];
        let asked = self.connection.ask_one(subject, &fields, payload);
        let (connection, time) = (self.connection.clone(), self.time);
        async move {
            let answer = connection.answer(asked?, time).await?;
            match answer::decode(&answer.payload).map_err(Failed::Answer)? {
                Ok(answer) => {
                    let sequence = answer["seq"].as_u64();
                    sequence.map(Append::Appended).ok_or(Failed::Answer("seq"))
                }
                Err(problem) if answer::WRONG_LAST_SEQUENCE.contains(&problem.number) => {
                    Ok(Append::Refused)
                }
                Err(problem) => Err(Failed::Refused(problem)),
            }
        }
    }

    /// Entries from a sequence on, up to a count and about that many bytes. Any server with a copy may answer, and may
    /// lag behind the leader.
    pub async fn read(&self, from: u64, count: usize, bytes_max: usize) -> Result<Batch, Failed> {
        let question = json!({"seq": from.max(1), "batch": count.max(1), "max_bytes": bytes_max});
        let subject = self.api("DIRECT.GET");
        // The last one may have the maximum message size.
        let room = self.connection.greeting().payload_bytes_max;
        let bytes_max = bytes_max + room + ENTRY_BYTES * count.max(1);
        let question = question.to_string();
        let mut answers =
            self.connection
                .ask_many(&subject, &[], question.as_bytes(), bytes_max)?;
        let mut batch = Batch::default();
        loop {
            let answer = answers.next_within(self.time).await;
            let answer = answer.ok_or(Failed::Silent)?;
            if answer.status() == Some(503) {
                return Err(Failed::Nobody);
            }
            match Got::read(answer).map_err(Failed::Answer)? {
                Got::End | Got::Nothing => return Ok(batch),
                Got::Entry { sequence, payload } => {
                    if batch
                        .entries
                        .last()
                        .is_some_and(|(last, _)| *last >= sequence)
                    {
                        return Err(Failed::Answer("order"));
                    }
                    batch.entries.push((sequence, payload));
                }
            }
        }
    }

    /// The last message of a subject.
    pub async fn last_of(&self, subject: &str) -> Result<Option<(u64, Vec<u8>)>, Failed> {
        let question = json!({"last_by_subj": subject}).to_string();
        let api = self.api("DIRECT.GET");
        let answer = self
            .connection
            .request(&api, &[], question.as_bytes(), self.time);
        match Got::read(answer.await?).map_err(Failed::Answer)? {
            Got::Entry { sequence, payload } => Ok(Some((sequence, payload))),
            Got::End | Got::Nothing => Ok(None),
        }
    }

    /// Purges all messages up to and including that sequence.
    pub async fn purge(&self, to: u64) -> Result<(), Failed> {
        let question = json!({"seq": to + 1});
        self.ask("STREAM.PURGE", &question).await.map(drop)
    }

    /// Deletes it with all messages. Returns false if it does not exist.
    pub async fn delete(&self) -> Result<bool, Failed> {
        match self.ask("STREAM.DELETE", &json!({})).await {
            Ok(_) => Ok(true),
            Err(Failed::Refused(problem)) if problem.number == answer::NO_STREAM => Ok(false),
            Err(failed) => Err(failed),
        }
    }

    pub(crate) async fn ask(&self, what: &str, question: &Json) -> Result<Json, Failed> {
        let subject = self.api(what);
        let question = question.to_string();
        let answer = self
            .connection
            .request(&subject, &[], question.as_bytes(), self.time);
        let answer = answer::decode(&answer.await?.payload).map_err(Failed::Answer)?;
        answer.map_err(Failed::Refused)
    }

    /// The API subject for the stream.
    fn api(&self, what: &str) -> String {
        format!("$JS.API.{what}.{}", self.name)
    }
}

/// Longer than an election usually takes.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Servers without a leader do not answer earlier requests once one is elected.
const ASK_AGAIN: Duration = Duration::from_millis(250);
