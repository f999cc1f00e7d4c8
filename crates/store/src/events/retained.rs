//! A realm's retained events in its store: pending changes, and the events at the start.

use std::collections::BTreeMap;
use std::mem;

use crosstie_routing::RetainedEvent;
use rusqlite::{Connection, params};

use super::chunk::{self, Chunk};
use super::store::EventStore;
use crate::error::{StoreError, StoreErrorKind};

/// Changes to be written: by number, the event or its removal.
///
/// An event that is removed before it is written never is. So there are no more changes than the realm retains and the
/// file has, and none need be refused.
#[derive(Debug, Default)]
pub(super) struct Changes {
    events: BTreeMap<u64, Option<RetainedEvent>>,
    bytes: usize,
}

/// Approximate memory of a change beside its event.
const CHANGE_BYTES: usize = 64;

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn retain(&mut self, event: RetainedEvent) {
        self.bytes += CHANGE_BYTES + event.event.bytes();
        self.events.insert(event.number, Some(event));
    }

    pub(super) fn forget(&mut self, number: u64) {
        match self.events.remove(&number) {
            Some(Some(event)) => self.bytes -= CHANGE_BYTES + event.event.bytes(),
            other => {
                self.bytes += if other.is_none() { CHANGE_BYTES } else { 0 };
                self.events.insert(number, None);
            }
        }
    }

    /// Appends later changes.
    pub(super) fn append(&mut self, later: &mut Self) {
        if self.events.is_empty() {
            mem::swap(self, later);
            return;
        }
        for (number, change) in mem::take(later).events {
            match change {
                Some(event) => self.retain(event),
                None => self.forget(number),
            }
        }
    }

    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        for (number, change) in &self.events {
            let number = *number as i64;
            let Some(RetainedEvent { ends_us, event, .. }) = change else {
                let delete = "DELETE FROM retained WHERE number = ?1";
                connection.prepare_cached(delete)?.execute([number])?;
                continue;
            };
            let mut chunk = Chunk::default();
            chunk.push(event, None);
            let (publication, body) = chunk.finish();
            let insert = "INSERT OR REPLACE INTO retained (number, ends_us, publication, body)
                          VALUES (?1, ?2, ?3, ?4)";
            let ends_us = ends_us.map(|end| i64::try_from(end).unwrap_or(i64::MAX));
            connection.prepare_cached(insert)?.execute(params![
                number,
                ends_us,
                publication,
                body
            ])?;
        }
        Ok(())
    }
}

impl EventStore {
    /// The retained events that it has, in the order of their numbers.
    pub fn retained(&self) -> Result<Vec<RetainedEvent>, StoreError> {
        let path = &self.config.path;
        let failed = |error| StoreError::sqlite(path, "reading it", error);
        let select = "SELECT number, ends_us, publication, body FROM retained ORDER BY number";
        let mut select = self.file.connection.prepare(select).map_err(failed)?;
        let mut rows = select.query(()).map_err(failed)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let number: i64 = row.get(0).map_err(failed)?;
            let ends_us: Option<i64> = row.get(1).map_err(failed)?;
            let bytes = |column| row.get_ref(column).and_then(|bytes| Ok(bytes.as_blob()?));
            let (publication, body) = (bytes(2).map_err(failed)?, bytes(3).map_err(failed)?);
            let event = chunk::events(publication, body, "").and_then(|mut events| events.pop());
            let event = event.ok_or_else(|| {
                let what = format!("the retained event {number} has other bytes than were written");
                StoreError::new(path, StoreErrorKind::Damaged { what })
            })?;
            found.push(RetainedEvent {
                number: number as u64,
                ends_us: ends_us.map(|end| end as u64),
                event,
            });
        }
        Ok(found)
    }

    /// Forgets all of them: events that would return later are long obsolete.
    pub fn forget_retained(&self) -> Result<(), StoreError> {
        let deleted = self.file.connection.execute("DELETE FROM retained", ());
        deleted
            .map(drop)
            .map_err(|error| StoreError::sqlite(&self.config.path, "writing it", error))
    }
}

#[cfg(test)]
mod tests {
    use crosstie_routing::Recorded;
    use crosstie_wamp::{PublicationId, Serializer};

    use super::*;

    fn event(number: u64) -> RetainedEvent {
        let event = Recorded {
            publication: PublicationId(number),
            unix_us: 1,
            publisher: None,
            topic: "com.kept".into(),
            receivers: None,
            passthru: None,
            serializer: Serializer::Json,
            payload: b"[1]".as_slice().into(),
            args_bytes: 3,
        };
        RetainedEvent {
            number,
            ends_us: None,
            event,
        }
    }

    #[test]
    fn an_event_removed_before_a_write_is_not_written() {
        let mut changes = Changes::default();
        for number in 2..100 {
            changes.retain(event(number));
            changes.forget(number - 1);
            changes.forget(number - 1);
        }
        // The first was written before, and the last still exists.
        assert_eq!(changes.events.len(), 99);
        let left = changes.events.values().flatten().count();
        assert_eq!(left, 1);
    }

    #[test]
    fn bytes_are_those_of_the_rest() {
        let mut changes = Changes::default();
        let mut later = Changes::default();
        changes.retain(event(1));
        later.forget(1);
        later.retain(event(2));
        changes.append(&mut later);
        assert_eq!((later.bytes(), later.len()), (0, 0));
        let mut only = Changes::default();
        only.retain(event(2));
        assert_eq!((changes.bytes(), changes.len()), (only.bytes(), 1));
    }
}
