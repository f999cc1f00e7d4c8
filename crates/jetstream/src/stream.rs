//! JetStream's streams: made, inspected, appended to, read, purged.

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
    /// How long an answer is waited for.
    pub time: Duration,
}

/// How a stream is to be made: in files, and nothing in it becomes too old or too much by itself.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    pub subjects: Vec<String>,
    /// Servers that have it.
    pub replicas: u8,
    /// What else is to be said, as the server names it.
    pub more: Map<String, Json>,
}

/// What became of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Append {
    /// It has that sequence.
    Appended(u64),
    /// The last message is not the one that was expected.
    Refused,
}

/// Entries that follow each other; there may be holes where some were purged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// With their sequences.
    pub entries: Vec<(u64, Vec<u8>)>,
}

/// What a server reads of a stream before it hands it out, beside the bytes that were asked for.
const ENTRY_BYTES: usize = 1024;

impl Stream {
    pub fn new(connection: Connection, name: &str) -> Self {
        Self {
            connection,
            name: name.to_owned(),
            time: ANSWER_TIME,
        }
    }

    /// Makes it; where it is there and as it is to be, nothing is done.
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

    /// What its leader says of it; `None` where there is no such stream.
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

    /// Appends behind a message that must be the last one. An error says nothing about whether it was done.
    pub async fn append(
        &self,
        subject: &str,
        after: u64,
        payload: &[u8],
    ) -> Result<Append, Failed> {
        let after = after.to_string();
        let fields = [
            ("Nats-Expected-Last-Sequence", after.as_str()),
            ("Nats-Expected-Stream", &self.name),
        ];
        let answer = self
            .connection
            .request(subject, &fields, payload, self.time);
        match answer::decode(&answer.await?.payload).map_err(Failed::Answer)? {
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

    /// Entries from a sequence on, as many as are there, up to a count and to about so many bytes. Any server that has the
    /// stream may answer, and know less than its leader.
    pub async fn read(&self, from: u64, count: usize, bytes_max: usize) -> Result<Batch, Failed> {
        let question = json!({"seq": from.max(1), "batch": count.max(1), "max_bytes": bytes_max});
        let subject = self.api("DIRECT.GET");
        // The last one may be as long as a message can be.
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

    /// Purges what is up to and with that sequence.
    pub async fn purge(&self, to: u64) -> Result<(), Failed> {
        let question = json!({"seq": to + 1});
        self.ask("STREAM.PURGE", &question).await.map(drop)
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

    /// Where servers are asked for something of the stream.
    fn api(&self, what: &str) -> String {
        format!("$JS.API.{what}.{}", self.name)
    }
}

/// Longer than an election usually takes.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Servers that have no leader at present do not answer what a new one is asked later.
const ASK_AGAIN: Duration = Duration::from_secs(1);
