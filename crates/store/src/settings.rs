//! Settings of the broker: keys and values that belong to no vhost, and whose meaning the store does not know.

use std::mem;
use std::sync::Arc;

use crosstie_queues::{Position, Record};

use crate::segments::entity;
use crate::segments::log::Purpose;
use crate::segments::record::{SETTINGS, record_bytes};
use crate::write::{self, Writer};
use crate::{Batch, Store, StoreError};

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
        self.create_vhosts(&[], settings)
    }

    /// Creates vhosts and writes settings, all in one commit. Vhosts that exist stay.
    pub fn create_vhosts(
        &mut self,
        vhosts: &[Arc<str>],
        settings: &[NewSetting],
    ) -> Result<(), StoreError> {
        let mut created = Batch::default();
        for vhost in vhosts {
            created.push(vhost, vec![Record::VhostCreated], Position::default());
        }
        self.commit_with_settings(&created, settings)
    }

    /// Writes a batch, which deletes no vhost, and settings in one commit.
    pub(crate) fn commit_with_settings(
        &mut self,
        batch: &Batch,
        settings: &[NewSetting],
    ) -> Result<(), StoreError> {
        self.check_numbers(batch)?;
        let records = settings.iter().map(|(key, value)| {
            let value_bytes = value.as_ref().map_or(0, |value| value.len());
            record_bytes(FRAME_BYTES_MAX + key.len() + value_bytes)
        });
        let adds = write::is_adding(batch) || settings.iter().any(|(_, value)| value.is_some());
        let purpose = match adds {
            true => Purpose::Adding,
            false => Purpose::Freeing,
        };
        let bytes_max = records.sum::<u64>() + write::bytes_max(batch);
        self.commit_with(bytes_max, purpose, |draft, state, names| {
            let mut writer = Writer::new(draft, state, names, batch);
            for (vhost, record) in batch.records() {
                let number = writer.vhost(vhost);
                writer.write(number, record);
            }
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
