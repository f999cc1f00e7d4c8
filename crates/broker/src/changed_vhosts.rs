//! Changed vhosts and limits of the configuration, which a reload puts in force.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crosstie_config as model;
use crosstie_store::FreeMin;

use crate::broker::Broker;
use crate::definitions;
use crate::limits::vhost_config;
use crate::shared::Shared;

/// Vhosts and limits that are ready to replace the present ones.
pub struct ReadyVhosts {
    configured: BTreeSet<Arc<str>>,
    definitions: model::Definitions,
    limits: model::AmqpLimits,
}

impl Broker {
    /// Makes the vhosts and limits of a configuration ready, with those of its definitions. An error names the file and its
    /// fault, or the vhost that needs a restart.
    pub fn ready_vhosts(
        &self,
        amqp: &model::Amqp,
        directory: &Path,
    ) -> Result<ReadyVhosts, String> {
        let (amqp, definitions, _) = definitions::with_definitions(amqp, directory)?;
        let names = amqp.vhosts.iter().map(|vhost| vhost.name.as_str().into());
        let configured: BTreeSet<Arc<str>> = names.collect();
        let changes = self.vhost_changes.lock();
        for name in &configured {
            changes.check_idle(name).map_err(|e| e.to_string())?;
            if changes.unopened.contains(name) && self.replicated_of(name).is_none() {
                return Err(format!(
                    "vhost '{name}' needs a restart, since the store has contents of it from before the start"
                ));
            }
        }
        drop(changes);
        Ok(ReadyVhosts {
            configured,
            definitions,
            limits: amqp.limits,
        })
    }

    /// Maximum size of a message's body.
    pub fn message_bytes_max(&self) -> usize {
        self.message_bytes_max.load(Ordering::Relaxed)
    }

    /// The present limits.
    pub(crate) fn limits(&self) -> model::AmqpLimits {
        self.making.limits.lock().clone()
    }

    /// Changes limits. What exceeds a lower one stays.
    fn put_limits(&self, limits: &model::AmqpLimits) {
        let _context = self.making.keeper.enter();
        let former = mem::replace(&mut *self.making.limits.lock(), limits.clone());
        self.message_bytes_max
            .store(limits.message_bytes_max, Ordering::Relaxed);
        let Shared {
            flow, incomplete, ..
        } = &*self.shared;
        incomplete.set_bounds(limits.memory_bytes_max, limits.message_bytes_max);
        let waiting = || self.shared.store_waiting_bytes();
        flow.set_commit_bytes_max(limits.commit_bytes_max, waiting);
        // The orders of operators last until the configuration says something else.
        if limits.memory_bytes_max != former.memory_bytes_max {
            flow.set_memory_bytes_max(limits.memory_bytes_max);
        }
        if limits.disk_free_bytes_min != former.disk_free_bytes_min {
            let free_min = FreeMin::or_an_eighth(limits.disk_free_bytes_min);
            flow.note_free_min(free_min);
            self.shared.set_disk_free_min(free_min, || {});
        }
        for vhost in self.local_vhosts().iter().chain(&self.vhosts()) {
            let changed = vhost_config(vhost.name(), limits).limits;
            vhost.lock().set_limits(changed);
        }
        crosstie_transport::uncork();
    }

    /// Opens the vhosts that are new, and closes those that are gone, with their connections. What these have stays in the
    /// store, and is there again if the vhost returns.
    pub fn put_vhosts(self: &Arc<Self>, ready: ReadyVhosts) {
        let ReadyVhosts {
            configured,
            definitions,
            limits,
        } = ready;
        self.put_limits(&limits);
        let _context = self.making.keeper.enter();
        let mut changes = self.vhost_changes.lock();
        let is_local = |name: &&Arc<str>| {
            self.replicated_of(name).is_none() && !changes.pending.contains_key(*name)
        };
        for name in configured.iter().filter(is_local) {
            match self.find_local(name) {
                Some(vhost) if vhost.is_open() => continue,
                Some(vhost) => vhost.open(),
                None => self.open_configured(name, &definitions),
            }
            self.put_policies(name);
            self.put_vhost_limits(name);
            tracing::info!("vhost '{name}' is open");
        }
        for vhost in self.local_vhosts() {
            let name = &vhost.name;
            let is_kept = configured.contains(name) || changes.created.contains(name);
            if vhost.is_open() && !is_kept {
                self.shut_vhost(&vhost);
                tracing::info!("vhost '{name}' is closed, and its contents stay in the store");
            }
        }
        changes.configured = configured;
    }

    fn open_configured(&self, name: &Arc<str>, definitions: &model::Definitions) {
        let now = self.making.clock.time(Instant::now());
        let mut vhosts = BTreeMap::from([(Arc::clone(name), self.empty_vhost(name))]);
        // Those of other vhosts are left out.
        drop(definitions::define(definitions, now, &mut vhosts));
        for (name, vhost) in vhosts {
            let vhost = self.share_vhost(&name, vhost);
            vhost.settle();
            self.insert_vhost(&vhost);
            self.making.keeper.spawn(vhost.keep_time());
        }
    }
}
