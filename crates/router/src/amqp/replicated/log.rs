//! The log as a stream: its names, and its end as its leader knows it.

use std::time::Duration;

use crosstie_jetstream::answer::StreamInfo;
use crosstie_jetstream::{Connection, Failed, Stream, StreamConfig};
use crosstie_ledger::{Owner, Sequence};
use crosstie_nats::escaped;

/// A vhost's names on NATS.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) stream: String,
    pub(super) log: String,
    pub(super) own: String,
    pub(super) beat: String,
    /// Before a term's number.
    term: String,
}

/// Entries that are read at once.
const ENTRIES_MAX: usize = 1024;
const READ_BYTES: usize = 4 << 20;

/// How long is waited for servers that know less than the leader.
const BEHIND_WAIT: Duration = Duration::from_millis(50);
const BEHIND_MAX: u32 = 40;

impl Names {
    pub(super) fn of(vhost: &str) -> Self {
        let word = escaped(vhost);
        Self {
            stream: format!("A1_{word}"),
            log: format!("A1.{word}.log"),
            own: format!("A1.{word}.own"),
            beat: format!("A1.{word}.beat"),
            term: format!("A1.{word}.term"),
        }
    }

    /// Where the owner of that epoch, and nobody else, is asked whether it is there.
    pub(super) fn term(&self, epoch: u64) -> String {
        format!("{}.{epoch:016x}", self.term)
    }

    pub(super) fn stream(&self, connection: &Connection) -> Stream {
        Stream::new(connection.clone(), &self.stream)
    }

    pub(super) fn config(&self, replicas: u8) -> StreamConfig {
        StreamConfig {
            subjects: vec![self.log.clone(), self.own.clone()],
            replicas,
            more: Default::default(),
        }
    }

    /// What an entry is published on.
    pub(super) fn subject(&self, entry: &[u8]) -> &str {
        match Owner::of(entry) {
            Ok(Some(_)) => &self.own,
            _ => &self.log,
        }
    }
}

/// A stream, if it is what a vhost's log has to be; why it is not.
pub(super) fn fit(info: StreamInfo, replicas: u8) -> Result<StreamInfo, String> {
    match unfit(&info, replicas) {
        Some(why) => Err(why),
        None => Ok(info),
    }
}

/// Why a stream is not what a vhost's log has to be.
pub(super) fn unfit(info: &StreamInfo, replicas: u8) -> Option<String> {
    let found = |what: &str| Some(format!("its stream has {what}"));
    match () {
        () if info.storage != "file" => found("no files"),
        () if info.retention != "limits" => found("another retention than limits"),
        () if info.max_age != 0 => found("an age after which entries go"),
        () if info.is_purge_denied => found("deny_purge, and could not be cleaned"),
        () if info.replicas != u64::from(replicas) => Some(format!(
            "its stream has {} replicas, expected {replicas}",
            info.replicas
        )),
        () => None,
    }
}

/// Entries behind that one, as many as come at once.
pub(super) async fn read_some(stream: &Stream, after: u64) -> Result<Vec<(u64, Vec<u8>)>, Failed> {
    let batch = stream.read(after + 1, ENTRIES_MAX, READ_BYTES).await?;
    Ok(batch.entries)
}

/// The end of a log.
pub(super) struct End {
    /// The number of the last entry.
    pub(super) last: u64,
    /// With their numbers.
    pub(super) entries: Vec<(u64, Vec<u8>)>,
}

impl End {
    /// As the ledger takes them.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Sequence, &[u8])> {
        let entries = self.entries.iter();
        entries.map(|(sequence, entry)| (Sequence(*sequence), &entry[..]))
    }
}

/// All entries behind that one, up to the end that the leader knows, and the number of the last one.
pub(super) async fn read_end(stream: &Stream, after: u64) -> Result<End, Failed> {
    let info = stream.info().await?.ok_or(Failed::Nobody)?;
    let mut entries: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut behind = 0;
    loop {
        let reached = entries.last().map_or(after, |(sequence, _)| *sequence);
        let bytes: usize = entries.iter().map(|(_, entry)| entry.len()).sum();
        // What is ours there is short: more is somebody else's.
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
    fn names_are_words_of_subjects() {
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
