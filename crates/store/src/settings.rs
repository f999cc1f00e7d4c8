//! Settings of the broker: keys and values that belong to no vhost, and whose meaning the store does not know.

use std::mem;
use std::sync::Arc;

use crate::segments::entity;
use crate::segments::log::Purpose;
use crate::segments::record::{SETTINGS, record_bytes};
use crate::{Store, StoreError};

/// A key, and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub key: Arc<str>,
    pub value: Arc<str>,
}

/// A key, and its new value; without one, the setting is deleted.
pub type NewSetting = (Arc<str>, Option<Arc<str>>);

impl Store {
    /// The settings that were read, by their keys.
    pub fn take_settings(&mut self) -> Vec<Setting> {
        mem::take(&mut self.settings)
    }

    /// Writes settings in one commit. When this returns they are on the disk. Of a commit that fails nothing is.
    pub fn put_settings(&mut self, settings: &[NewSetting]) -> Result<(), StoreError> {
        let records = settings.iter().map(|(key, value)| {
            let value_bytes = value.as_ref().map_or(0, |value| value.len());
            record_bytes(FRAME_BYTES_MAX + key.len() + value_bytes)
        });
        let purpose = match settings.iter().any(|(_, value)| value.is_some()) {
            true => Purpose::Adding,
            false => Purpose::Freeing,
        };
        self.commit_with(records.sum(), purpose, |draft, state, names| {
            for (key, value) in settings {
                let place = draft.end_sequence() as i64;
                let former = match value {
                    Some(_) => names.set(key, place),
                    None => names.unset(key),
                };
                if let Some(former) = former {
                    draft.remove(state, SETTINGS, former);
                }
                if let Some(value) = value {
                    draft.store(SETTINGS, place, 0, |out| {
                        entity::encode_setting(key, value, out);
                        0
                    });
                }
            }
        })
    }
}

/// Bytes around a key and a value, and of the record that removes the former one.
const FRAME_BYTES_MAX: usize = 128;
