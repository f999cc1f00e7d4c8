//! Changes by operators.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Instant;

use crosstie_config as model;
use crosstie_metadata::{
    Applied, Change, Effect, Layers, Metadata, Origin, Outcome, Refusal, RefusalKind, VhostLimit,
};
use crosstie_queues::policy::Policies;
use crosstie_store::NewSetting;

use super::layers::add_created;
use super::live::report_overridden;
use super::owed::Due;
use super::users::users;
use crate::broker::Broker;
use crate::identity::{self, ServerProperties};
use crate::operator_error::OperatorError;
use crate::shared::STORE_WAIT_MAX;
use crate::vhost::SharedVhost;

impl Broker {
    /// Makes a change: in the store first, then here. Waits for the store, and needs a tokio context. Entries and new vhosts
    /// are one commit.
    pub(crate) fn change(self: &Arc<Self>, change: Change) -> Result<Outcome, Refusal> {
        let _one_at_a_time = self.metadata.begin();
        let before = self.follow_vhosts();
        let (next, applied) = before.apply(change, &mut salt)?;
        self.complete(next, applied)
    }

    /// Stores a change and carries it out. The caller has begun it.
    pub(crate) fn complete(
        self: &Arc<Self>,
        next: Metadata,
        applied: Applied,
    ) -> Result<Outcome, Refusal> {
        let Applied {
            outcome,
            records,
            effects,
        } = applied;
        self.settle_owed()?;
        let settings: Vec<NewSetting> = records
            .into_iter()
            .map(|record| (record.key.into(), record.value.map(Arc::from)))
            .collect();
        if let Err(refusal) = self.store_with_vhosts(settings, &next, &effects) {
            // A vhost may be deleted.
            self.follow_vhosts();
            self.settle_owed_later();
            return Err(refusal);
        }
        self.metadata.put(Arc::new(next));
        self.carry_out(&effects);
        Ok(outcome)
    }

    /// Follows a changed configuration: its entries count. The store deletes those that it overrides a moment later.
    ///
    /// `layers` has no vhosts of run time: those that there are now are added, for some may be newer than `layers`.
    pub(crate) fn reconfigure(&self, mut layers: Layers) {
        let _one_at_a_time = self.metadata.begin();
        self.follow_vhosts();
        add_created(&mut layers, &self.vhost_changes.lock().created);
        let (next, overridden, orphans) = self.metadata.now().reconfigured(layers);
        report_overridden(&overridden);
        self.metadata
            .owed
            .add(overridden.into_iter().chain(orphans));
        self.settle_owed_later();
        self.metadata.put(Arc::new(next));
        self.put_changed_users();
        self.put_all_policies();
        for vhost in self.vhosts() {
            self.put_vhost_limits(vhost.name());
        }
    }

    /// Forgets what a deleted vhost had.
    pub(crate) fn forget_vhost_entries(&self) {
        let _one_at_a_time = self.metadata.begin();
        self.follow_vhosts();
        self.settle_owed_later();
    }

    /// The metadata with the vhosts that there are at present. The caller has begun a change.
    pub(crate) fn follow_vhosts(&self) -> Arc<Metadata> {
        let local = self.local_vhosts();
        let local = local.iter().filter(|vhost| vhost.is_open());
        let replicated = self.replicated().iter();
        let now = self.metadata.now();
        // A reload opens new ones of the configuration after their users and permissions count.
        let configured = now
            .vhosts()
            .filter(|name| matches!(now.vhost_origin(name), Some(Origin::Configured(_))));
        let vhosts: BTreeSet<_> = local
            .map(|vhost| Arc::clone(vhost.name()))
            .chain(replicated.map(|found| Arc::clone(&found.name)))
            .chain(configured.cloned())
            .collect();
        if let Some((next, forgotten)) = now.with_vhosts(&vhosts) {
            self.metadata.owed.add(forgotten);
            self.metadata.put(Arc::new(next));
            self.put_changed_users();
        }
        self.metadata.now()
    }

    /// Deletes what the store was to delete before, and waits for that.
    fn settle_owed(&self) -> Result<(), Refusal> {
        if let Some(due) = self.due() {
            self.store(due.settings())?;
            due.done();
        }
        Ok(())
    }

    /// The same without waiting. If it fails, the next change tries again.
    fn settle_owed_later(&self) {
        if let Some(due) = self.due() {
            let settings = due.settings();
            self.shared.put_settings_later(settings, || due.done());
        }
    }

    /// The entries of a vhost stay with it until the store has deleted it: a restart may come before.
    fn due(&self) -> Option<Due> {
        let changes = self.vhost_changes.lock();
        let is_changing = |vhost: &Arc<str>| changes.pending.contains_key(vhost);
        self.metadata.owed.due(is_changing)
    }

    fn store(&self, settings: Vec<NewSetting>) -> Result<(), Refusal> {
        self.create_and_store(Vec::new(), settings)
    }

    /// Creates the vhosts of a change together with its settings, or deletes its vhost first.
    fn store_with_vhosts(
        self: &Arc<Self>,
        settings: Vec<NewSetting>,
        next: &Metadata,
        effects: &[Effect],
    ) -> Result<(), Refusal> {
        let vhosts = effects.iter().filter_map(|effect| match effect {
            Effect::Vhost(name) => Some(Arc::clone(name)),
            _ => None,
        });
        let (created, deleted): (Vec<_>, Vec<_>) = vhosts.partition(|name| next.has_vhost(name));
        for name in &deleted {
            self.delete_and_wait(name)?;
        }
        if let Some(name) = created
            .iter()
            .find(|name| self.metadata.owed.has_vhost(name))
        {
            return Err(not_stored(format!("vhost '{name}' is being deleted")));
        }
        let created = self.begin_creations(&created).map_err(|e| refusal(&e))?;
        let stored = self.create_and_store(created.clone(), settings);
        self.end_creations(&created, stored.is_ok());
        stored
    }

    fn create_and_store(
        &self,
        vhosts: Vec<Arc<str>>,
        settings: Vec<NewSetting>,
    ) -> Result<(), Refusal> {
        if vhosts.is_empty() && settings.is_empty() {
            return Ok(());
        }
        let stored = self.shared.create_vhosts(vhosts, settings);
        stored.map_err(|why| not_stored(format!("the store cannot keep the change: {why}")))
    }

    /// Deletes a vhost, and waits until the store has done it.
    fn delete_and_wait(self: &Arc<Self>, name: &str) -> Result<(), Refusal> {
        let (done, outcome) = mpsc::channel();
        self.delete_vhost(name, move |outcome| {
            // The caller waits.
            let _ = done.send(outcome);
        });
        match outcome.recv_timeout(STORE_WAIT_MAX) {
            Ok(outcome) => outcome.map(drop).map_err(|error| refusal(&error)),
            Err(RecvTimeoutError::Timeout) => Err(not_stored(format!(
                "vhost '{name}' is closed, and deleted once the store can write"
            ))),
            Err(RecvTimeoutError::Disconnected) => Err(not_stored(format!(
                "vhost '{name}': the router is being stopped"
            ))),
        }
    }

    fn carry_out(&self, effects: &[Effect]) {
        // The permissions of a deleted vhost's users are gone with it.
        let is_of_users = |effect: &Effect| {
            matches!(
                effect,
                Effect::Permissions { .. } | Effect::User(_) | Effect::Vhost(_)
            )
        };
        if effects.iter().any(is_of_users) {
            self.put_changed_users();
        }
        let mut followed = BTreeSet::new();
        for effect in effects {
            match effect {
                // Many changes of a vhost's policies have it follow once.
                Effect::Policies(vhost) if !followed.insert(vhost) => {}
                Effect::GlobalParameter(name) if **name == *identity::CLUSTER_NAME => {
                    self.put_cluster_name();
                }
                Effect::Policies(vhost) => self.put_policies(vhost),
                Effect::VhostLimits(vhost) => self.put_vhost_limits(vhost),
                // Limits of users are read when a connection or a channel is opened.
                _ => {}
            }
        }
    }

    fn put_changed_users(&self) {
        let users = users(&self.metadata.now());
        self.put_users_now(Arc::new(users));
    }

    pub(crate) fn put_vhost_limits(&self, name: &str) {
        let max = self.metadata.now().vhost_limit(name, VhostLimit::Queues);
        if let Ok(vhost) = self.vhost(name) {
            vhost.limit_queues(max);
        }
    }

    /// The policies of a vhost.
    pub(crate) fn policies_of(&self, vhost: &str) -> Arc<Policies> {
        Arc::new(self.metadata.now().policies(vhost))
    }

    /// Has a vhost follow its present policies, if it is open here. Queues and exchanges that exist follow in turn with
    /// other work. Needs a tokio context.
    pub(crate) fn put_policies(&self, name: &str) {
        if let Ok(vhost) = self.vhost(name) {
            vhost.set_policies(self.policies_of(name));
        }
    }

    /// The same for all vhosts.
    pub(crate) fn put_all_policies(&self) {
        for vhost in self.vhosts() {
            vhost.set_policies(self.policies_of(vhost.name()));
        }
    }

    /// Puts the cluster's name into the server properties of later connections.
    pub(crate) fn put_cluster_name(&self) {
        let metadata = self.metadata.now();
        let mut parameters = metadata.global_parameters();
        let name = parameters.find(|(name, _)| ***name == *identity::CLUSTER_NAME);
        let name = name.and_then(|(_, value)| value.as_str());
        let mut properties = self.server_properties.write();
        let identity = model::AmqpIdentity {
            cluster_name: name.map(str::to_owned),
            ..properties.identity.clone()
        };
        *properties = ServerProperties::of(&identity);
    }
}

impl SharedVhost {
    /// Replaces the policies. Needs a tokio context.
    pub(crate) fn set_policies(self: &Arc<Self>, policies: Arc<Policies>) {
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        vhost.set_policies(now, policies, outbox);
        turn.finish();
    }

    fn limit_queues(self: &Arc<Self>, max: Option<usize>) {
        let mut turn = self.turn(Instant::now());
        let (vhost, ..) = turn.enter();
        vhost.limit_queues(max);
        turn.finish();
    }
}

fn not_stored(reason: String) -> Refusal {
    Refusal::new(RefusalKind::NotStored, reason)
}

fn refusal(error: &OperatorError) -> Refusal {
    let kind = match error {
        OperatorError::NotStored { .. } => RefusalKind::NotStored,
        _ => RefusalKind::Unsupported,
    };
    Refusal::new(kind, error.to_string())
}

/// Unpredictable bytes.
pub(crate) fn salt() -> [u8; 4] {
    let mut salt = [0; 4];
    // A node without random bytes has not started.
    let _ = getrandom::fill(&mut salt);
    salt
}
