//! The settings of a vhost that its log has, with the epochs that have set them.

use std::sync::Arc;

use super::Live;
use crate::key::Key;
use crate::messages::RECORD_BYTES;
use crate::setting::Setting;

impl Live {
    /// Notes the epoch of the batch whose records follow, and whether they are changes.
    pub(crate) fn note_writer(&mut self, epoch: u64, is_fresh: bool) {
        (self.epoch, self.is_fresh) = (epoch, is_fresh);
    }

    /// The epochs in which the settings were set.
    pub(crate) fn setting_epochs(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        let settings = self.settings.iter();
        settings.map(|(key, known)| (key, known.record.epoch))
    }

    /// Sets a setting, or removes it.
    pub(super) fn set(&mut self, key: &Arc<str>, value: Option<&Arc<str>>) {
        let before = self.settings.remove(key).map(|known| {
            self.settings_memory -= key.len() + known.record.value.len();
            let epoch = known.record.epoch;
            self.forget_some(Some(known));
            epoch
        });
        if let Some(value) = value {
            let of_texts = key.len() + value.len();
            self.settings_memory += of_texts;
            let bytes = RECORD_BYTES + of_texts as u64;
            let known = Setting {
                value: Arc::clone(value),
                epoch: before.filter(|_| !self.is_fresh).unwrap_or(self.epoch),
            };
            let counting = self.count_bytes(known, Key::Setting(Arc::clone(key)), bytes);
            self.settings.insert(Arc::clone(key), counting);
        }
    }
}
