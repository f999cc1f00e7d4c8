//! Changes by operators.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Instant;

use crosstie_config as model;
use crosstie_metadata::{
    Applied, Change, Effect, Key, Layers, Metadata, Origin, Outcome, Promise, Refusal, RefusalKind,
    Stored, VhostLimit,
};
use crosstie_queues::policy::Policies;
use crosstie_store::NewSetting;

use super::layers::add_created;
use super::live::report_overridden;
use super::owed::Due;
use super::terms::Submitted;
use super::users::users;
use crate::broker::Broker;
use crate::identity::{self, ServerProperties};
use crate::operator_error::OperatorError;
use crate::shared::STORE_WAIT_MAX;
use crate::vhost::SharedVhost;

/// Records of replicated vhosts, by vhost.
type OfLogs = BTreeMap<Arc<str>, (Arc<SharedVhost>, Vec<Stored>)>;

/// A change that counts, and that logs have yet to acknowledge.
#[must_use]
pub(crate) struct Completed {
    outcome: Outcome,
    /// Each log's part, and what the store has promised of it.
    submitted: Vec<(Submitted, Vec<Promise>)>,
}

impl Completed {
    /// Waits for the logs. The promises to each end with its own part: another log may be out of reach for long.
    pub(crate) fn wait(self, broker: &Broker) -> Result<Outcome, Refusal> {
        let deadline = Submitted::deadline();
        let mut refused = None;
        for (submitted, promises) in self.submitted {
            match submitted.wait_until(deadline) {
                Ok(()) if promises.is_empty() => {}
                Ok(()) => broker.end_promises(&promises),
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        refused.map_or(Ok(self.outcome), Err)
    }
}

impl Broker {
    /// Makes a change: in the store first, then here. Waits for the store, and needs a tokio context. Entries and new vhosts
    /// are one commit.
    ///
    /// Entries of a replicated vhost are in its log in their place. They count at once, as anything that changes in such a
    /// vhost, and the answer waits for the log. The store promises what a change of the store does to logs, so that a node
    /// that is killed in between completes the change when it owns the vhost again.
    pub(crate) fn change(self: &Arc<Self>, change: Change) -> Result<Outcome, Refusal> {
        let traced = match &change {
            Change::PutVhost { name, tracing, .. } => {
                tracing.map(|is_on| (Arc::clone(name), is_on))
            }
            _ => None,
        };
        let one_at_a_time = self.metadata.begin();
        let before = self.follow_vhosts();
        let applied = before.apply(change, &mut salt);
        let (next, applied) = applied.map_err(|refusal| self.named(refusal))?;
        let completed = self.complete(next, applied)?;
        drop(one_at_a_time);
        let outcome = completed.wait(self)?;
        // The vhost may have left this node since.
        if let Some((name, is_on)) = traced
            && let Ok(vhost) = self.vhost(&name)
        {
            let node = is_on.then(|| format!("crosstie@{}", self.home.node).into());
            vhost.set_traced(node);
        }
        Ok(outcome)
    }

    /// Stores a change and carries it out. The caller has begun it, and waits for the logs when that is over.
    pub(crate) fn complete(
        self: &Arc<Self>,
        next: Metadata,
        applied: Applied,
    ) -> Result<Completed, Refusal> {
        let Applied {
            outcome,
            records,
            effects,
        } = applied;
        let (of_logs, mut settings) = self.split(records)?;
        let promises = self.promises(&of_logs, !settings.is_empty(), &next);
        settings.extend(promises.iter().flatten().map(|promise| {
            let Stored { key, value } = promise.stored();
            (key.into(), value.map(Arc::from))
        }));
        let is_vhost = |effect: &Effect| matches!(effect, Effect::Vhost(_));
        if !settings.is_empty() || effects.iter().any(is_vhost) {
            self.settle_owed()?;
        }
        if let Err(refusal) = self.store_with_vhosts(settings, &next, &effects) {
            // A vhost may be deleted.
            self.follow_vhosts();
            self.settle_owed_later();
            return Err(refusal);
        }
        self.metadata.put(next);
        self.metadata.promise(promises.iter().flatten());
        let of_logs = of_logs.into_values().zip(promises);
        let submitted = of_logs.map(|((vhost, records), promises)| {
            let held = self.metadata.held_of(vhost.name());
            (vhost.put_settings(records, &held), promises)
        });
        let completed = Completed {
            outcome,
            submitted: submitted.collect(),
        };
        self.carry_out(&effects);
        Ok(completed)
    }

    /// The promises of the store to each log: its part of a change that is not of one log alone.
    fn promises(&self, of_logs: &OfLogs, is_of_store: bool, next: &Metadata) -> Vec<Vec<Promise>> {
        let is_whole = of_logs.len() + usize::from(is_of_store) > 1;
        let before = self.metadata.now();
        let promises = of_logs.iter().map(|(name, (vhost, records))| {
            let earlier = self.metadata.promises_to(name);
            let records = records.iter();
            Promise::of((&before, next), vhost.term(), &earlier, records, is_whole)
        });
        promises.collect()
    }

    /// The store forgets promises that a log has kept.
    fn end_promises(&self, kept: &[Promise]) {
        let _one_at_a_time = self.metadata.begin();
        self.metadata.end_promises(kept);
        self.settle_owed_later();
    }

    /// The records of each replicated vhost, and those of the store.
    fn split(&self, records: Vec<Stored>) -> Result<(OfLogs, Vec<NewSetting>), Refusal> {
        let mut of_logs = OfLogs::new();
        let mut of_store = Vec::new();
        for record in records {
            let key = Key::parse(&record.key);
            let vhost = key.as_ref().and_then(Key::vhost);
            let Some(name) = vhost.filter(|vhost| self.replicated_of(vhost).is_some()) else {
                of_store.push((record.key.into(), record.value.map(Arc::from)));
                continue;
            };
            if !of_logs.contains_key(name) {
                let vhost = self.vhost(name);
                let vhost = vhost.map_err(|whose| elsewhere(&whose.refusal(name)))?;
                self.check_readers(name)?;
                of_logs.insert(Arc::clone(name), (vhost, Vec::new()));
            }
            if let Some((_, records)) = of_logs.get_mut(name) {
                records.push(record);
            }
        }
        Ok((of_logs, of_store))
    }

    /// Refuses to change what a node that may own the vhost next cannot read.
    fn check_readers(&self, name: &str) -> Result<(), Refusal> {
        match self
            .replicated_of(name)
            .and_then(|found| found.seen().elders.into_iter().next())
        {
            None => Ok(()),
            Some(elder) => Err(Refusal::new(
                RefusalKind::Unsupported,
                format!(
                    "vhost '{name}' cannot be changed while node {elder} stands by: it is of an earlier version, and could \
                     not read the change. Upgrade it first"
                ),
            )),
        }
    }

    /// A refusal with the owner of the vhost that it is about, if another node has it.
    pub(crate) fn named(&self, refusal: Refusal) -> Refusal {
        let mut replicated = self.replicated().iter();
        let of = replicated.find(|found| refusal == Refusal::elsewhere(&found.name));
        match of.map(|found| (&found.name, self.vhost(&found.name))) {
            Some((name, Err(whose))) => elsewhere(&whose.refusal(name)),
            _ => refusal,
        }
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
        let (of_logs, of_store): (Vec<_>, Vec<_>) = overridden.into_iter().partition(|key| {
            let vhost = key.vhost();
            vhost.is_some_and(|vhost| self.replicated_of(vhost).is_some())
        });
        self.metadata.owed.add(of_store.into_iter().chain(orphans));
        self.settle_owed_later();
        self.metadata.put(next);
        for key in of_logs {
            if let Some(name) = key.vhost()
                && self.check_readers(name).is_ok()
                && let Ok(vhost) = self.vhost(name)
            {
                // Nobody waits for that.
                let held = self.metadata.held_of(name);
                drop(vhost.put_settings(vec![key.stored(None)], &held));
            }
        }
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
            self.metadata.put(next);
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
    pub(super) fn settle_owed_later(&self) {
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

    pub(super) fn put_changed_users(&self) {
        let _one_at_a_time = self.metadata.following.lock();
        let users = users(&self.metadata.now());
        self.put_users_now(Arc::new(users));
    }

    pub(crate) fn put_vhost_limits(&self, name: &str) {
        let max = self.queues_limit(name);
        if let Ok(vhost) = self.vhost(name) {
            vhost.limit_queues(max);
        }
    }

    /// The operator's limit of queues of a vhost.
    pub(crate) fn queues_limit(&self, vhost: &str) -> Option<usize> {
        let metadata = self.metadata.now();
        metadata.vhost_limit(vhost, VhostLimit::Queues)
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

/// The refusal of a change whose vhost is on another node.
fn elsewhere(whose: &str) -> Refusal {
    let reason = format!(
        "{whose}: its permissions, policies and limits are changed on the node that owns it"
    );
    Refusal::new(RefusalKind::Elsewhere, reason)
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
