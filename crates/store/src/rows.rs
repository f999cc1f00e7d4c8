//! Rows of messages.

use std::path::Path;
use std::sync::Arc;

use crosstie_queues::{MessageContent, StoredMessage, Time};
use rusqlite::Row;
use rusqlite::types::{Type, ValueRef};

use crate::content;
use crate::error::{StoreError, StoreErrorKind};

/// A message whose content is in its row, or among the shared contents, by its number there.
pub(crate) fn stored_message(
    row: &Row<'_>,
    shared: impl FnOnce(i64) -> rusqlite::Result<Option<Arc<MessageContent>>>,
) -> rusqlite::Result<StoredMessage> {
    let content = match row.get_ref(5)? {
        ValueRef::Integer(number) => shared(number)?
            .ok_or_else(|| not_as_written(5, "a message's shared content is not there"))?,
        _ => message_content(row, 5)?,
    };
    Ok(StoredMessage {
        content,
        expires_at: row.get::<_, Option<i64>>(3)?.map(|time| Time(time as u64)),
        deliveries: row.get(4)?,
    })
}

pub(crate) fn message_content(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Arc<MessageContent>> {
    let bytes = row.get_ref(column)?.as_blob()?;
    content::decode(bytes)
        .map(Arc::new)
        .ok_or_else(|| not_as_written(column, "a message is not as it was written"))
}

/// Why it could not be read.
pub(crate) fn error(path: &Path, error: rusqlite::Error) -> StoreError {
    match error {
        // The row's values are impossible: it has been changed since it was written.
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..) => StoreError::new(
            path,
            StoreErrorKind::Damaged {
                what: error.to_string(),
            },
        ),
        _ => StoreError::sqlite(path, "reading it", error),
    }
}

pub(crate) fn not_as_written(column: usize, what: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, what.into())
}
