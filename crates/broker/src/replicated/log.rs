//! The log as a stream: its subjects, and its end as known to its leader.

use std::time::{Duration, Instant};

use crosstie_jetstream::answer::StreamInfo;
use crosstie_jetstream::{Connection, Failed, Stream, StreamConfig};
use crosstie_ledger::{Owner, Sequence};
use crosstie_nats::escaped;

/// A vhost's subjects and stream on NATS.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub stream: String,
    pub(super) log: String,
    pub own: String,
    pub(super) beat: String,
    /// The prefix of a term's subject.
    term: String,
}

/// Maximum number of entries in one read.
const ENTRIES_MAX: usize = 1024;
const READ_BYTES: usize = 4 << 20;

/// Time without an answer after which a read is repeated. NATS sends each to one server with a copy, by chance, also to
/// one that is gone, for some seconds. Doubles with each attempt, for servers that are slow.
const READ_MAX: Duration = Duration::from_millis(500);

/// Pause, and maximum number of retries, for servers that lag behind the leader.
const BEHIND_WAIT: Duration = Duration::from_millis(50);
const BEHIND_MAX: u32 = 40;

impl Names {
    pub(crate) fn of(vhost: &str) -> Self {
        let word = escaped(vhost);
        Self {
            stream: format!("A1_{word}"),
            log: format!("A1.{word}.log"),
            own: format!("A1.{word}.own"),
            beat: format!("A1.{word}.beat"),
            term: format!("A1.{word}.term"),
        }
    }

    /// The probe subject of the owner of that epoch, to which only that owner subscribes.
    pub(super) fn term(&self, epoch: u64) -> String {
        format!("{}.{epoch:016x}", self.term)
    }

    pub(crate) fn stream(&self, connection: &Connection) -> Stream {
        Stream::new(connection.clone(), &self.stream)
    }

    pub(crate) fn config(&self, replicas: u8) -> StreamConfig {
        StreamConfig {
            subjects: vec![self.log.clone(), self.own.clone()],
            replicas,
            more: Default::default(),
        }
    }

    /// The subject on which an entry is published.
    pub(super) fn subject(&self, entry: &[u8]) -> &str {
        match Owner::of(entry) {
            Ok(Some(_)) => &self.own,
            _ => &self.log,
        }
    }
}

/// Returns the stream's state if it can be a vhost's log; otherwise the reason.
pub(super) fn fit(info: StreamInfo, replicas: u8) -> Result<StreamInfo, String> {
    match unfit(&info, replicas) {
        Some(why) => Err(why),
        None => Ok(info),
    }
}

/// Why a stream cannot be a vhost's log.
pub(super) fn unfit(info: &StreamInfo, replicas: u8) -> Option<String> {
    let found = |what: &str| Some(format!("its stream has {what}"));
    match () {
        () if info.storage != "file" => found("no files"),
        () if info.retention != "limits" => found("another retention than limits"),
        () if info.max_age != 0 => found("a maximum age of entries"),
        () if info.is_purge_denied => found("deny_purge, so that it cannot be purged"),
        () if info.replicas != u64::from(replicas) => Some(format!(
            "its stream has {} replicas, expected {replicas}",
            info.replicas
        )),
        () => None,
    }
}

/// The entries behind `after`, as many as one read returns.
pub(super) async fn read_some(stream: &Stream, after: u64) -> Result<Vec<(u64, Vec<u8>)>, Failed> {
    read_few(stream, after, ENTRIES_MAX).await
}

/// All entries from the first to the last, without those that were purged at the log's front: the nodes of a vhost may
/// see different extents, and an owner purges its own. An error says which entry the server does not have.
pub(super) async fn read_between(
    stream: &Stream,
    (first, last): (Sequence, Sequence),
) -> Result<Vec<(u64, Vec<u8>)>, String> {
    let mut entries: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut next = first.0;
    while next <= last.0 {
        let left = (last.0 - next + 1) as usize;
        let read = read_few(stream, next - 1, left.min(ENTRIES_MAX)).await;
        let read = read.map_err(|failed| failed.to_string())?;
        let before = entries.len();
        for (at, entry) in read {
            let is_front = entries.is_empty() && at > next;
            if at > last.0 || at != next && !is_front {
                break;
            }
            next = at + 1;
            entries.push((at, entry));
        }
        if entries.len() == before {
            return Err(format!("the server does not have its entry {next}"));
        }
    }
    Ok(entries)
}

/// At most `count_max` entries behind `after`.
async fn read_few(
    stream: &Stream,
    after: u64,
    count_max: usize,
) -> Result<Vec<(u64, Vec<u8>)>, Failed> {
    let deadline = Instant::now() + stream.time;
    let mut time = READ_MAX;
    loop {
        let once = Stream {
            time: time.min(deadline.saturating_duration_since(Instant::now())),
            ..stream.clone()
        };
        match once.read(after + 1, count_max, READ_BYTES).await {
            Ok(batch) => return Ok(batch.entries),
            Err(Failed::Silent) if Instant::now() < deadline => time *= 2,
            Err(failed) => return Err(failed),
        }
    }
}

/// The end of a log.
pub(super) struct End {
    /// The number of the last entry.
    pub(super) last: u64,
    /// Entries with their numbers.
    pub(super) entries: Vec<(u64, Vec<u8>)>,
}

impl End {
    /// The entries in the ledger's form.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Sequence, &[u8])> {
        let entries = self.entries.iter();
        entries.map(|(sequence, entry)| (Sequence(*sequence), &entry[..]))
    }
}

/// All entries behind `after` up to the leader's end, with the number of the last one.
pub(super) async fn read_end(stream: &Stream, after: u64) -> Result<End, Failed> {
    let info = stream.info().await?.ok_or(Failed::Nobody)?;
    let mut entries: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut behind = 0;
    loop {
        let reached = entries.last().map_or(after, |(sequence, _)| *sequence);
        let bytes: usize = entries.iter().map(|(_, entry)| entry.len()).sum();
        // The entries of this node's own attempts are short: more belong to another node.
        if reached >= info.last || info.messages == 0 || bytes > READ_BYTES {
            return Ok(End {
                last: info.last,
                entries,
            });
        }
        let more = read_some(stream, reached).await?;
        if more.is_empty() {
            behind += 1;
            if behind > BEHIND_MAX {
                return Err(Failed::Silent);
            }
            tokio::time::sleep(BEHIND_WAIT).await;
        }
        entries.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_subject_tokens() {
        for (name, expected) in [
            ("/", "A1_=2F"),
            ("", "A1_="),
            ("a.b", "A1_a=2Eb"),
            ("Prod-1_x", "A1_Prod-1_x"),
            ("=", "A1_=3D"),
        ] {
            assert_eq!(Names::of(name).stream, expected);
        }
    }
}
