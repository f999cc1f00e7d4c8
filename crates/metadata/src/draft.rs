//! A state that is being changed, with the records and effects so far.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::key::{Key, Stored};
use crate::layered::Removed;
use crate::metadata::{Effect, Metadata};
use crate::{Refusal, RefusalKind};

/// Bytes of the salt of a hash.
pub(crate) type Salt = [u8; 4];

/// A state that is being changed.
pub(crate) struct Draft<'s> {
    pub(crate) state: Metadata,
    pub(crate) records: Vec<Stored>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) is_vhost_deleted: bool,
    pub(crate) salt: &'s mut dyn FnMut() -> Salt,
}

impl Draft<'_> {
    /// Checks that a permission's vhost and user exist.
    pub(crate) fn check_home(&self, vhost: &Arc<str>, user: &Arc<str>) -> Result<(), Refusal> {
        let has_vhost = self.state.vhosts.find(vhost).is_some();
        if !has_vhost || self.state.users.find(user).is_none() {
            return Err(Refusal::invalid("vhost_or_user_not_found"));
        }
        self.check_here(vhost)
    }

    /// The entries of a replicated vhost are on the node that owns it.
    pub(crate) fn check_here(&self, vhost: &Arc<str>) -> Result<(), Refusal> {
        match self.state.is_elsewhere(vhost) {
            true => Err(Refusal::elsewhere(vhost)),
            false => Ok(()),
        }
    }

    pub(crate) fn keep(&mut self, key: &Key, value: &Json) {
        self.records.push(key.stored(Some(value)));
    }

    /// Records a removal; `None` if there was nothing to remove.
    pub(crate) fn forget(&mut self, key: &Key, removed: Option<Removed>) -> Option<()> {
        let record = match removed? {
            Removed::DefaultDeleted => key.stored(Some(&Json::Null)),
            Removed::Forgotten => key.stored(None),
        };
        self.records.push(record);
        Some(())
    }
}

pub(crate) fn check_not_configured(
    what: &dyn fmt::Display,
    configured: Option<&'static str>,
) -> Result<(), Refusal> {
    match configured {
        None => Ok(()),
        Some(by) => {
            let reason = format!(
                "{what} is read-only: the configuration has it under \"{by}\"; change it there and reload the node"
            );
            Err(Refusal::new(RefusalKind::Configured, reason))
        }
    }
}
