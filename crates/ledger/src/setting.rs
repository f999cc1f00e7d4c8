//! A setting of a vhost in its log.

use std::sync::Arc;

use crosstie_queues::Record;

#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) value: Arc<str>,
    /// The epoch of the owner that has set this. Of a setting that was read only where it was written again, that epoch.
    pub(crate) epoch: u64,
}

pub(crate) fn setting(key: &Arc<str>, value: &Arc<str>) -> Record {
    Record::Setting {
        key: Arc::clone(key),
        value: Some(Arc::clone(value)),
    }
}
