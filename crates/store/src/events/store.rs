//! The file of a realm's events: writing, and eviction.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use crosstie_routing::{Recorded, Recording};
use crosstie_wamp::MatchPolicy;
use rusqlite::{Connection, OptionalExtension, params};

use super::chunk::Chunk;
use super::retained::Changes;
use crate::error::{StoreError, StoreErrorKind};
use crate::file::StoreFile;
use crate::form::EVENTS;

/// The file, its realm, and its bounds.
#[derive(Clone, Debug)]
pub struct EventStoreConfig {
    pub path: PathBuf,
    /// The realm of the events: a file keeps those of one realm.
    pub realm: String,
    /// In the order in which events name their logs.
    pub logs: Vec<Recording>,
    /// Of all events; the oldest go, of whatever log.
    pub bytes_max: u64,
    /// Whether a commit waits for the disk. Without, the last commits may be lost with the machine, but not with the
    /// process.
    pub is_synced: bool,
}

/// An open store. No other process can open the file meanwhile.
pub struct EventStore {
    pub(super) file: StoreFile,
    pub(super) config: EventStoreConfig,
    /// Those of the configuration, then those that are in the file from an earlier one.
    logs: Vec<Log>,
}

/// A log in the file.
#[derive(Clone, Debug)]
pub(super) struct Log {
    number: u64,
    /// The topic of all its events, unless the log is for a pattern.
    pub(super) topic: Option<Box<str>>,
    events_max: u64,
    age_us_max: u64,
    /// The number of the next event.
    next: u64,
    oldest: Option<Oldest>,
    bytes: u64,
}

/// A log's first chunk.
#[derive(Clone, Copy, Debug)]
struct Oldest {
    first: u64,
    events: u64,
    time_max: u64,
    bytes: u64,
}

/// The result of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Committed {
    /// Events that went because all of them had too many bytes.
    pub(super) evicted: u64,
    /// More are to go than one commit takes.
    pub(super) has_more: bool,
}

/// A place has a log's number and an event's.
const NUMBER_BITS: u32 = 40;
const LOGS_MAX: u64 = 1 << (63 - NUMBER_BITS);

/// Chunks that go in one commit, beside as many as come: each takes some microseconds.
const CHUNKS_GONE_MAX: usize = 256;

impl EventStore {
    /// Opens the file, or makes it.
    pub fn open(mut config: EventStoreConfig) -> Result<Self, StoreError> {
        // SQLite knows names that are no file's, and the working directory may change.
        config.path = std::path::absolute(&config.path)
            .map_err(|error| StoreError::io(&config.path, "finding it", error))?;
        let path = &config.path;
        let file = match StoreFile::open(path, &EVENTS)? {
            Some(file) => file,
            None => StoreFile::create(path, &EVENTS)?,
        };
        if !config.is_synced {
            let set = file.connection.pragma_update(None, "synchronous", "NORMAL");
            set.map_err(|error| StoreError::sqlite(path, "opening it", error))?;
        }
        check_realm(&file.connection, &config)?;
        let read = read_logs(&file.connection, &config.logs);
        let logs = read.map_err(|error| StoreError::sqlite(path, "reading it", error))?;
        if logs.iter().any(|log| log.number >= LOGS_MAX) {
            let what = "it has more logs than there can be".to_owned();
            return Err(StoreError::new(path, StoreErrorKind::Damaged { what }));
        }
        Ok(Self { file, config, logs })
    }

    /// Writes events, each with its log's index in the configuration, and changes of retained events, in one
    /// transaction. Evicts events beyond the bounds. If it fails, nothing is written.
    pub(super) fn commit(
        &mut self,
        events: &[(usize, Recorded)],
        retained: &Changes,
    ) -> Result<Committed, StoreError> {
        let before = self.logs.clone();
        let written = self.write(events, retained);
        if written.is_err() {
            self.logs = before;
        }
        written.map_err(|error| StoreError::sqlite(&self.config.path, "writing it", error))
    }

    /// Number of events in the store, and their bytes.
    pub fn counts(&self) -> (u64, u64) {
        let events = self
            .logs
            .iter()
            .map(|log| log.next.saturating_sub(log.first()))
            .sum();
        (events, self.bytes())
    }

    /// Whether events go because they are too old.
    pub(super) fn has_ages(&self) -> bool {
        self.logs.iter().any(|log| log.age_us_max > 0)
    }

    pub(super) fn log(&self, place: usize) -> Option<&Log> {
        self.logs.get(place)
    }

    fn bytes(&self) -> u64 {
        self.logs.iter().map(|log| log.bytes).sum()
    }

    fn write(
        &mut self,
        events: &[(usize, Recorded)],
        retained: &Changes,
    ) -> rusqlite::Result<Committed> {
        let connection = &self.file.connection;
        let transaction = connection.unchecked_transaction()?;
        retained.write(connection)?;
        let mut chunks: Vec<Option<Chunk>> = Vec::new();
        chunks.resize_with(self.logs.len(), || None);
        let mut came = 0;
        for (place, event) in events {
            let Some(log) = self.logs.get_mut(*place) else {
                continue;
            };
            let chunk = chunks[*place].get_or_insert_default();
            chunk.push(event, log.topic.as_deref());
            if chunk.is_full() {
                log.append(connection, chunk)?;
                chunks[*place] = None;
                came += 1;
            }
        }
        for (log, chunk) in self.logs.iter_mut().zip(&mut chunks) {
            if let Some(chunk) = chunk {
                log.append(connection, chunk)?;
                came += 1;
            }
        }
        let committed = make_room(connection, &mut self.logs, &self.config, came)?;
        transaction.commit()?;
        Ok(committed)
    }
}

/// Evicts events that are too many or too old: a number of chunks beside the new ones.
fn make_room(
    connection: &Connection,
    logs: &mut [Log],
    config: &EventStoreConfig,
    came: usize,
) -> rusqlite::Result<Committed> {
    let mut left = CHUNKS_GONE_MAX + came;
    let now = unix_us();
    for log in logs.iter_mut() {
        while log.has_excess(now) {
            if left == 0 {
                return Ok(Committed {
                    evicted: 0,
                    has_more: true,
                });
            }
            left -= 1;
            log.remove_oldest(connection)?;
        }
    }
    let mut evicted = 0;
    let mut bytes: u64 = logs.iter().map(|log| log.bytes).sum();
    while bytes > config.bytes_max {
        let aged = logs.iter_mut().filter(|log| log.oldest.is_some());
        let oldest = aged.min_by_key(|log| log.oldest.map(|oldest| oldest.time_max));
        let Some(log) = oldest.filter(|_| left > 0) else {
            return Ok(Committed {
                evicted,
                has_more: left == 0,
            });
        };
        left -= 1;
        let before = log.bytes;
        evicted += log.remove_oldest(connection)?;
        bytes -= before - log.bytes;
    }
    Ok(Committed {
        evicted,
        has_more: false,
    })
}

impl Log {
    /// Numbers of the stored events within the bound; queries leave out those that are too old.
    pub(super) fn numbers(&self) -> std::ops::Range<u64> {
        let first = self.next.saturating_sub(self.events_max);
        self.first().max(first)..self.next
    }

    pub(super) fn place(&self, number: u64) -> i64 {
        (self.number << NUMBER_BITS | number) as i64
    }

    /// The number of a place of this log.
    pub(super) fn number(&self, place: i64) -> u64 {
        (place as u64) & ((1 << NUMBER_BITS) - 1)
    }

    /// All places that it could have.
    pub(super) fn end(&self) -> i64 {
        self.place((1 << NUMBER_BITS) - 1)
    }

    /// The number of the first stored event.
    pub(super) fn first(&self) -> u64 {
        self.oldest.map_or(self.next, |oldest| oldest.first)
    }

    fn has_excess(&self, now: u64) -> bool {
        self.oldest.is_some_and(|oldest| {
            let behind = self.next.saturating_sub(oldest.first + oldest.events);
            let age = now.saturating_sub(oldest.time_max);
            behind >= self.events_max || (self.age_us_max > 0 && age > self.age_us_max)
        })
    }

    fn append(&mut self, connection: &Connection, chunk: &mut Chunk) -> rusqlite::Result<()> {
        let (events, times) = (chunk.events, (chunk.time_min, chunk.time_max));
        let (publications, body) = chunk.finish();
        let bytes = (publications.len() + body.len()) as u64;
        let mut insert = connection.prepare_cached(
            "INSERT INTO chunk (place, events, time_min, time_max, publications, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        let place = self.place(self.next);
        let times = (times.0 as i64, times.1 as i64);
        insert.execute(params![
            place,
            events as i64,
            times.0,
            times.1,
            publications,
            body
        ])?;
        self.oldest.get_or_insert(Oldest {
            first: self.next,
            events,
            time_max: times.1 as u64,
            bytes,
        });
        self.next += events;
        self.bytes += bytes;
        Ok(())
    }

    /// How many events that were.
    fn remove_oldest(&mut self, connection: &Connection) -> rusqlite::Result<u64> {
        let Some(oldest) = self.oldest else {
            return Ok(0);
        };
        let mut delete = connection.prepare_cached("DELETE FROM chunk WHERE place = ?1")?;
        delete.execute([self.place(oldest.first)])?;
        self.bytes = self.bytes.saturating_sub(oldest.bytes);
        self.find_oldest(connection, oldest.first + oldest.events)?;
        Ok(oldest.events)
    }

    fn find_oldest(&mut self, connection: &Connection, from: u64) -> rusqlite::Result<()> {
        let mut find = connection.prepare_cached(
            "SELECT place, events, time_max, length(publications) + length(body)
             FROM chunk WHERE place >= ?1 AND place < ?2 ORDER BY place LIMIT 1",
        )?;
        let (from, end) = (self.place(from), self.end());
        let found = find.query_row([from, end], |row| {
            Ok(Oldest {
                first: self.number(row.get(0)?),
                events: count(row.get(1)?),
                time_max: row.get::<_, i64>(2)? as u64,
                bytes: count(row.get(3)?),
            })
        });
        self.oldest = found.optional()?;
        Ok(())
    }
}

/// A file of another realm is not taken for this one's.
fn check_realm(connection: &Connection, config: &EventStoreConfig) -> Result<(), StoreError> {
    let path = &config.path;
    let found = connection
        .query_row("SELECT name FROM realm", (), |row| row.get::<_, String>(0))
        .optional()
        .map_err(|error| StoreError::sqlite(path, "reading it", error))?;
    match found {
        None => connection
            .execute("INSERT INTO realm (name) VALUES (?1)", [&config.realm])
            .map(drop)
            .map_err(|error| StoreError::sqlite(path, "writing it", error)),
        Some(realm) if realm == config.realm => Ok(()),
        Some(realm) => Err(StoreError::new(path, StoreErrorKind::OtherRealm { realm })),
    }
}

/// The logs of the configuration, then those of an earlier one, whose events are evicted when there are too many bytes.
fn read_logs(connection: &Connection, recordings: &[Recording]) -> rusqlite::Result<Vec<Log>> {
    let transaction = connection.unchecked_transaction()?;
    let mut numbers = Vec::new();
    for recording in recordings {
        let policy = recording.match_policy.name();
        let names = [policy, &recording.uri];
        connection.execute(
            "INSERT INTO log (match, uri) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            names,
        )?;
        let find = "SELECT number FROM log WHERE match = ?1 AND uri = ?2";
        let number = connection.query_row(find, names, |row| row.get::<_, i64>(0))?;
        numbers.push(number as u64);
    }
    transaction.commit()?;
    let mut logs: Vec<_> = numbers
        .iter()
        .zip(recordings)
        .map(|(number, recording)| Log::new(*number, Some(recording)))
        .collect();
    let mut others = connection.prepare("SELECT number FROM log ORDER BY number")?;
    for number in others.query_map((), |row| row.get::<_, i64>(0))? {
        let number = number? as u64;
        if !numbers.contains(&number) {
            logs.push(Log::new(number, None));
        }
    }
    for log in &mut logs {
        log.read(connection)?;
    }
    Ok(logs)
}

impl Log {
    fn new(number: u64, recording: Option<&Recording>) -> Self {
        let exact = recording.filter(|recording| recording.match_policy == MatchPolicy::Exact);
        Self {
            number,
            topic: exact.map(|recording| recording.uri.as_str().into()),
            events_max: recording.map_or(u64::MAX, |recording| recording.events_max as u64),
            age_us_max: recording.map_or(0, |recording| recording.age_ms_max.saturating_mul(1_000)),
            next: 0,
            oldest: None,
            bytes: 0,
        }
    }

    /// Reads the log's state from the file.
    fn read(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let all = [self.place(0), self.end()];
        let last = connection.query_row(
            "SELECT place, events FROM chunk WHERE place >= ?1 AND place < ?2
             ORDER BY place DESC LIMIT 1",
            all,
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
        );
        self.next = last
            .optional()?
            .map_or(0, |(place, events)| self.number(place) + count(events));
        let sum = "SELECT coalesce(sum(length(publications) + length(body)), 0) FROM chunk
                   WHERE place >= ?1 AND place < ?2";
        let bytes: i64 = connection.query_row(sum, all, |row| row.get(0))?;
        self.bytes = bytes as u64;
        self.find_oldest(connection, 0)
    }
}

/// A number of events or bytes; another program may have written any.
pub(super) fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0).min(u64::from(u32::MAX))
}

fn unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}
