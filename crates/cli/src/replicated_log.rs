//! The log of a replicated vhost, read without a node: compared with a copy, and deleted.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use crosstie_config::Replicated;
use crosstie_jetstream::answer::StreamInfo;
use crosstie_jetstream::{Failed, Server, Speaking, Stream, Subscription};
use crosstie_ledger::{Ledger, Sequence};
use crosstie_nats::escaped;
use crosstie_queues::{Destination, QueueId, Record};
use serde_json::Value as Json;
use tokio::time::sleep;

use crate::nats;

/// A vhost's log on its servers.
pub(crate) struct Log {
    stream: Stream,
    /// Heartbeats of nodes.
    beats: Subscription,
    /// The state as it was read; `None` without a stream.
    read: Option<StreamInfo>,
}

/// The contents of a vhost, without the messages' own.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    exchanges: BTreeSet<Arc<str>>,
    queues: BTreeSet<Arc<str>>,
    bindings: BTreeSet<Binding>,
    /// By the queue's number, and the place in it.
    messages: BTreeSet<(QueueId, i64)>,
    /// Keys and values.
    settings: BTreeSet<(Arc<str>, Arc<str>)>,
}

/// The source, whether the destination is a queue, the destination, and the routing key.
type Binding = (Arc<str>, bool, Arc<str>, Arc<str>);

/// Nodes send two heartbeats a second.
const LISTEN: Duration = Duration::from_secs(3);

/// Maximum bytes of heartbeats that wait here.
const BEATS_BYTES_MAX: usize = 1 << 20;

const ENTRIES_MAX: usize = 1024;
const READ_BYTES: usize = 4 << 20;

/// Number of reads without a result, and their interval: a server may lag behind its leader, and a request is lost
/// if NATS sends it to a server that has just ended.
const TRIES: u32 = 40;
const TRY_AGAIN: Duration = Duration::from_millis(50);

impl Log {
    /// Connects to the first server that answers.
    pub(crate) async fn open(
        vhost: &str,
        settings: &Replicated,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let credentials = settings.credentials.as_deref();
        let speaking = Speaking::read(credentials, &settings.ca_certificates, directory)?;
        let servers = settings.urls.iter().map(|url| {
            let server = Server {
                host: url.host.clone(),
                port: url.port,
                is_tls: url.is_tls,
            };
            (format!("{}:{}", url.host, url.port), server)
        });
        let connection = nats::dial(servers, &speaking).await?;
        let word = escaped(vhost);
        let beats = connection.subscribe(&format!("A1.{word}.beat"), BEATS_BYTES_MAX);
        Ok(Self {
            beats: beats.context("no heartbeats can be received")?,
            stream: Stream::new(connection, &format!("A1_{word}")),
            read: None,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.stream.name
    }

    /// Number of entries that were read.
    pub(crate) fn entries(&self) -> u64 {
        self.read.as_ref().map_or(0, |info| info.messages)
    }

    /// Waits for heartbeats. An error if a node uses the log.
    pub(crate) async fn listen(&mut self) -> Result<(), String> {
        if let Some(beat) = self.beats.next_within(LISTEN).await {
            return Err(in_use(&beat.payload));
        }
        match self.stream.connection.has_ended() {
            true => Err("the connection to NATS has ended: repeat the command".to_owned()),
            false => Ok(()),
        }
    }

    /// Reads the log. An error is the reason why a copy with these contents cannot replace it.
    pub(crate) async fn compare(&mut self, kept: &Contents) -> Result<(), String> {
        self.read = self.info().await?;
        let Some(info) = &self.read else {
            return Ok(());
        };
        let ledger = self.read_all(info).await?;
        if self.beats.is_denied() {
            return Err("NATS denies the subscription to heartbeats".to_owned());
        }
        let found = Contents::of(ledger.records());
        match found.beside(kept) {
            (0, 0) => Ok(()),
            (missing, more) => Err(format!(
                "this copy differs from the log: of {} queues, exchanges, bindings, messages and settings in the log {missing} are \
                 missing in it, and it has {more} others. Use the copy of the last owner, by --copy",
                found.count()
            )),
        }
    }

    /// Deletes the log, if it is as it was read. Returns whether it was there.
    pub(crate) async fn delete(&mut self) -> Result<bool, String> {
        if let Some(beat) = self.beats.next_waiting() {
            return Err(in_use(&beat.payload));
        }
        let info = self.info().await?;
        let end = |info: &StreamInfo| (info.created.clone(), info.last);
        if info.as_ref().map(end) != self.read.as_ref().map(end) {
            return Err("a node has written to it meanwhile".to_owned());
        }
        self.stream
            .delete()
            .await
            .map_err(|failed| self.told(&failed))
    }

    async fn info(&self) -> Result<Option<StreamInfo>, String> {
        self.stream
            .info()
            .await
            .map_err(|failed| self.told(&failed))
    }

    async fn read_all(&self, info: &StreamInfo) -> Result<Ledger, String> {
        let mut ledger = Ledger::new(Default::default());
        let (mut after, mut tries) = (0, 0);
        while after < info.last && info.messages > 0 {
            let entries = match self.stream.read(after + 1, ENTRIES_MAX, READ_BYTES).await {
                Ok(batch) => batch.entries,
                Err(failed) if tries == TRIES => return Err(self.told(&failed)),
                Err(_) => Vec::new(),
            };
            if entries.is_empty() {
                if tries == TRIES {
                    return Err(format!("the log ends at entry {after} of {}", info.last));
                }
                tries += 1;
                sleep(TRY_AGAIN).await;
            }
            for (sequence, entry) in entries {
                after = sequence;
                tries = 0;
                let read = ledger.handle_entry(Sequence(sequence), &entry);
                read.map_err(|broken| format!("the log is broken at entry {sequence}: {broken}"))?;
            }
        }
        let checked = ledger.check_end(Sequence(info.last), None);
        checked.map_err(|broken| format!("the log is not whole: {broken}"))?;
        Ok(ledger)
    }

    /// Requests that NATS denies get no answer.
    fn told(&self, failed: &Failed) -> String {
        match (failed, self.stream.connection.denied()) {
            (Failed::Silent, Some(denied)) => denied,
            (failed, _) => failed.to_string(),
        }
    }
}

/// What a node's heartbeat tells.
fn in_use(beat: &[u8]) -> String {
    let beat: Json = serde_json::from_slice(beat).unwrap_or_default();
    let node = beat["node"].as_str().unwrap_or("of another version");
    let role = match beat["owner"] == true {
        true => "owns the vhost",
        false => "stands by for the vhost",
    };
    format!("node {node} {role}: stop all nodes, the owner last")
}

impl Contents {
    pub(crate) fn of(records: impl IntoIterator<Item = Record>) -> Self {
        let mut contents = Self::default();
        for record in records {
            match record {
                Record::ExchangeDeclared { name, .. } => {
                    contents.exchanges.insert(name);
                }
                Record::QueueDeclared { name, .. } => {
                    contents.queues.insert(name);
                }
                Record::Bound {
                    source,
                    destination,
                    routing_key,
                    ..
                } => {
                    let (is_queue, name) = match destination {
                        Destination::Exchange(name) => (false, name),
                        Destination::Queue(name) => (true, name),
                    };
                    contents
                        .bindings
                        .insert((source, is_queue, name, routing_key));
                }
                Record::Enqueued { queue, place, .. } => {
                    contents.messages.insert((queue, place));
                }
                Record::Setting {
                    key,
                    value: Some(value),
                } => {
                    contents.settings.insert((key, value));
                }
                _ => {}
            }
        }
        contents
    }

    fn count(&self) -> usize {
        self.exchanges.len()
            + self.queues.len()
            + self.bindings.len()
            + self.messages.len()
            + self.settings.len()
    }

    /// Number of parts that the other one lacks, and of those that it has in addition.
    fn beside(&self, other: &Self) -> (usize, usize) {
        let common = self.exchanges.intersection(&other.exchanges).count()
            + self.queues.intersection(&other.queues).count()
            + self.bindings.intersection(&other.bindings).count()
            + self.messages.intersection(&other.messages).count()
            + self.settings.intersection(&other.settings).count();
        (self.count() - common, other.count() - common)
    }
}
