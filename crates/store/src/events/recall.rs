//! A search in a realm's events, in turns.

use std::ops::{ControlFlow, Range};

use crosstie_routing::{Recall, Recalled, Recorded};
use rusqlite::{Row, params};

use super::chunk;
use super::store::{EventStore, Log, count};
use crate::error::{StoreError, StoreErrorKind};

/// A question and how far it has come.
pub(super) struct RecallTurns {
    recall: Recall,
    stage: Stage,
}

enum Stage {
    /// Waits until earlier recorded events are written.
    New,
    /// Searches for publications: events from `end` on have been examined.
    Finding { end: u64, found: [Option<u64>; 4] },
    /// Events of these numbers are to be offered.
    Offering(Range<u64>),
}

/// Maximum work per turn: chunks examined without their events, and events.
const CHUNKS_MAX: usize = 2_048;
const EVENTS_MAX: usize = 1_024;
const BYTES_MAX: usize = 4 << 20;

/// A chunk without its events.
struct Head {
    first: u64,
    events: u64,
    times: Range<u64>,
}

impl RecallTurns {
    pub(super) fn new(recall: Recall) -> Self {
        let stage = Stage::New;
        Self { recall, stage }
    }

    /// Continues for a turn; breaks with the answer.
    pub(super) fn step(self, store: &EventStore) -> ControlFlow<Recalled, Self> {
        let Self { mut recall, stage } = self;
        let Some(log) = store.log(recall.log()) else {
            return ControlFlow::Break(recall.fail("there is no such history".to_owned()));
        };
        let stage = match stage {
            Stage::New if recall.names_publications() => Stage::Finding {
                end: log.numbers().end,
                found: [None; 4],
            },
            Stage::New => Stage::Offering(log.numbers()),
            Stage::Finding { end, found } => match find(store, log, &recall, end, found) {
                Ok(ControlFlow::Continue(stage)) => stage,
                Ok(ControlFlow::Break(found)) => match recall.places(found, log.numbers()) {
                    Ok(places) => Stage::Offering(places),
                    Err(which) => return ControlFlow::Break(recall.fail_without(which)),
                },
                Err(error) => return ControlFlow::Break(recall.fail(error.to_string())),
            },
            Stage::Offering(numbers) => match offer(store, log, &mut recall, numbers) {
                Ok(Some(numbers)) => Stage::Offering(numbers),
                Ok(None) => return ControlFlow::Break(recall.end()),
                Err(error) => return ControlFlow::Break(recall.fail(error.to_string())),
            },
        };
        ControlFlow::Continue(Self { recall, stage })
    }
}

/// Searches for publications from the newest on: a query for everything since the last one needs little.
fn find(
    store: &EventStore,
    log: &Log,
    recall: &Recall,
    before: u64,
    mut found: [Option<u64>; 4],
) -> Result<ControlFlow<[Option<u64>; 4], Stage>, StoreError> {
    let failed = |error| StoreError::sqlite(&store.config.path, "reading it", error);
    let (wanted, all) = (recall.publications(), log.numbers());
    let mut select = store
        .file
        .connection
        .prepare_cached(
            "SELECT place, publications FROM chunk
             WHERE place >= ?1 AND place < ?2 ORDER BY place DESC",
        )
        .map_err(failed)?;
    let mut rows = select
        .query(params![log.place(0), log.place(before)])
        .map_err(failed)?;
    let mut chunks = 0;
    while let Some(row) = rows.next().map_err(failed)? {
        let first = log.number(row.get(0).map_err(failed)?);
        let bytes = row.get_ref(1).and_then(|bytes| Ok(bytes.as_blob()?));
        let ids = chunk::publications(bytes.map_err(failed)?).ok_or_else(|| damaged(store))?;
        for (number, id) in (first..).zip(ids) {
            for (wanted, found) in wanted.iter().zip(&mut found) {
                if *wanted == Some(id) && all.contains(&number) {
                    *found = Some(number);
                }
            }
        }
        let mut pairs = wanted.iter().zip(&found);
        if first <= all.start || pairs.all(|(wanted, found)| wanted.is_none() || found.is_some()) {
            return Ok(ControlFlow::Break(found));
        }
        chunks += 1;
        if chunks >= CHUNKS_MAX {
            return Ok(ControlFlow::Continue(Stage::Finding { end: first, found }));
        }
    }
    Ok(ControlFlow::Break(found))
}

/// Offers events from one end; those that are left, if there is a need for them.
fn offer(
    store: &EventStore,
    log: &Log,
    recall: &mut Recall,
    mut left: Range<u64>,
) -> Result<Option<Range<u64>>, StoreError> {
    let failed = |error| StoreError::sqlite(&store.config.path, "reading it", error);
    // Some of them may have been evicted since the last turn.
    left.start = left.start.max(log.first());
    if left.is_empty() {
        return Ok(None);
    }
    let newest_first = recall.is_newest_first();
    let (mut chunks, mut events, mut bytes) = (0, 0, 0);
    let query = match newest_first {
        true => NEWEST_FIRST,
        false => OLDEST_FIRST,
    };
    let connection = &store.file.connection;
    let mut select = connection.prepare_cached(query).map_err(failed)?;
    let places = params![log.place(left.start), log.place(left.end)];
    // They are read as they are needed: most ask for the last few.
    let mut rows = select.query(places).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let head = Head::read(log, row).map_err(failed)?;
        let inside = head.first.max(left.start)..(head.first + head.events).min(left.end);
        if head.times.start < recall.times().end && recall.times().start < head.times.end {
            let found = read(store, log, head.first, &mut bytes)?;
            events += found.len();
            let mut numbered: Vec<_> = (head.first..).zip(found).collect();
            if newest_first {
                numbered.reverse();
            }
            for (number, event) in &numbered {
                if inside.contains(number) && recall.offer(event).is_break() {
                    return Ok(None);
                }
            }
        }
        match newest_first {
            true => left.end = inside.start,
            false => left.start = inside.end,
        }
        chunks += 1;
        if chunks >= CHUNKS_MAX || events >= EVENTS_MAX || bytes >= BYTES_MAX {
            return Ok((!left.is_empty()).then_some(left));
        }
    }
    Ok(None)
}

/// The chunks in which events of such numbers are, of which the first may be within one.
const OLDEST_FIRST: &str = "SELECT place, events, time_min, time_max FROM chunk
    WHERE place >= (SELECT max(place) FROM chunk WHERE place <= ?1) AND place < ?2 ORDER BY place";
const NEWEST_FIRST: &str = "SELECT place, events, time_min, time_max FROM chunk
    WHERE place >= (SELECT max(place) FROM chunk WHERE place <= ?1) AND place < ?2
    ORDER BY place DESC";

impl Head {
    fn read(log: &Log, row: &Row<'_>) -> rusqlite::Result<Self> {
        let times = (row.get::<_, i64>(2)? as u64, row.get::<_, i64>(3)? as u64);
        Ok(Self {
            first: log.number(row.get(0)?),
            events: count(row.get(1)?),
            times: times.0..times.1.saturating_add(1),
        })
    }
}

fn read(
    store: &EventStore,
    log: &Log,
    first: u64,
    bytes: &mut usize,
) -> Result<Vec<Recorded>, StoreError> {
    let failed = |error| StoreError::sqlite(&store.config.path, "reading it", error);
    let select = "SELECT publications, body FROM chunk WHERE place = ?1";
    let connection = &store.file.connection;
    let mut select = connection.prepare_cached(select).map_err(failed)?;
    let topic = log.topic.as_deref().unwrap_or_default();
    let found = select.query_row([log.place(first)], |row| {
        let (ids, body) = (row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?);
        *bytes += body.len();
        Ok(chunk::events(ids, body, topic))
    });
    found.map_err(failed)?.ok_or_else(|| damaged(store))
}

fn damaged(store: &EventStore) -> StoreError {
    let what = "events have other bytes than were written".to_owned();
    StoreError::new(&store.config.path, StoreErrorKind::Damaged { what })
}
