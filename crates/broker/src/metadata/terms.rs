//! Settings of replicated vhosts: restored from the log when this node begins to own a vhost, and written to the log
//! while it does.
//!
//! ```text
//! the log ─▶ LogSettings ─▶ Broker::begin_term ─▶ Metadata ─▶ permissions, policies, limits ─▶ the vhost opens
//! Broker::change ─▶ SharedVhost::put_settings ─▶ the journal ─▶ the log's acknowledgement ─▶ the answer
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crosstie_metadata::{BEGUN, Key, Promise, Refusal, RefusalKind, Stored, Verdict};
use crosstie_store::Setting;

use super::log_settings::{Begin, LogSettings};
use crate::broker::Broker;
use crate::vhost::{Keeper, SharedVhost};

/// Longer than the time after which an owner gives up a log that acknowledges nothing.
const LOG_WAIT_MAX: Duration = Duration::from_secs(60);

/// Changes of a replicated vhost on their way to its log.
pub(crate) struct Submitted {
    vhost: Arc<SharedVhost>,
    outcome: Receiver<Result<(), String>>,
}

impl Submitted {
    /// Waits until the log has the changes.
    pub(crate) fn wait(self) -> Result<(), Refusal> {
        self.wait_until(Self::deadline())
    }

    /// The latest time for an answer.
    pub(crate) fn deadline() -> Instant {
        Instant::now() + LOG_WAIT_MAX
    }

    pub(crate) fn wait_until(self, deadline: Instant) -> Result<(), Refusal> {
        let left = deadline.saturating_duration_since(Instant::now());
        let why = match self.outcome.recv_timeout(left) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            Err(_) => "its log acknowledges nothing".to_owned(),
        };
        let name = self.vhost.name();
        let reason = format!("vhost '{name}' may or may not keep the change: {why}");
        Err(Refusal::new(RefusalKind::NotStored, reason))
    }
}

impl Broker {
    /// This node owns a replicated vhost, whose log has these settings: they count from now on. Called before the vhost
    /// is opened; [`Self::settle_term`] follows.
    pub(crate) fn begin_term(&self, name: &Arc<str>, log: &LogSettings) -> Begin {
        let held = self.metadata.held_of(name);
        let seen = self.replicated_of(name).map(|found| found.seen());
        let has_elder = seen.is_some_and(|seen| !seen.elders.is_empty());
        let mut entries = log.entries.clone();
        entries.remove(BEGUN);
        let mut begin = Begin {
            promises: Vec::new(),
            settings: Vec::new(),
            held: held
                .iter()
                .filter_map(|held| Key::parse(&held.key))
                .collect(),
        };
        match log.has_begun() {
            true if held.is_empty() => {}
            true => tracing::warn!(
                "vhost '{name}': its log has settings, and counts; those of this node's store from before the vhost was \
                 replicated are deleted: {}",
                listed(&begin.held)
            ),
            false if has_elder && !held.is_empty() => {
                let waiting = listed(&begin.held);
                begin.held.clear();
                // They count meanwhile.
                entries.extend(held.into_iter().map(|setting| (setting.key, setting.value)));
                tracing::warn!(
                    "vhost '{name}': a node of an earlier version is there, so that its log gets no settings: those of \
                     this node's store wait for a later takeover: {waiting}"
                );
            }
            false => {
                for Setting { key, value } in held {
                    begin.settings.push(Stored {
                        key: key.to_string(),
                        value: Some(value.to_string()),
                    });
                    entries.insert(key, value);
                }
            }
        }
        self.keep_promises(name, log, &mut entries, &mut begin);
        if has_elder {
            // They count meanwhile, and wait for a later takeover.
            begin.settings.clear();
            begin.promises.clear();
        }
        let number = self.metadata.next_term();
        let begun = self
            .metadata
            .update(|metadata| metadata.begin_term(name, number, &entries));
        super::live::report_overridden(&begun.overridden);
        for unreadable in &begun.unreadable {
            tracing::error!(
                "vhost '{name}': its log has the setting {unreadable}, which this version cannot read and does without: a \
                 later version has written it"
            );
        }
        let overridden = begun.overridden.iter().filter(|_| !has_elder);
        for key in overridden {
            let text = key.text();
            begin.settings.retain(|setting| setting.key != text);
            begin.settings.push(key.stored(None));
        }
        self.put_changed_users();
        begin
    }

    /// Has a log get what the store has promised it.
    fn keep_promises(
        &self,
        name: &str,
        log: &LogSettings,
        entries: &mut BTreeMap<Arc<str>, Arc<str>>,
        begin: &mut Begin,
    ) {
        for (key, promise) in self.metadata.promises_to(name) {
            match self.judge(&promise, log) {
                Verdict::Due(due) => {
                    tracing::info!("vhost '{name}': its log lacked a change of {key}");
                    let text = due.key.as_str().into();
                    match &due.value {
                        Some(value) => entries.insert(text, value.as_str().into()),
                        None => entries.remove(&text),
                    };
                    begin.settings.push(due);
                }
                Verdict::OfNewUser => tracing::warn!(
                    "{key} was to go with its user. Other nodes have owned the vhost since, and the user was created \
                     again: the permission stays"
                ),
                Verdict::Over => {}
            }
            begin.promises.push(promise);
        }
    }

    fn judge(&self, promise: &Promise, log: &LogSettings) -> Verdict {
        let key = promise.key().text();
        let value = log.entries.get(&*key).map(|value| &**value);
        let present = value.map(|value| {
            // A setting without an epoch is one of this moment.
            let epoch = log.epochs.get(&*key).copied().unwrap_or(u64::MAX);
            (value, epoch)
        });
        let now = self.metadata.now();
        let user = promise.key().user();
        let has_user = user.is_some_and(|user| now.user(user).is_some());
        promise.judge(log.place, present, has_user)
    }

    /// Writes what the log is to have into it, once the vhost is open. Returns the report about settings of the store, which
    /// [`Self::forget_held`] takes once it has come.
    pub(crate) fn settle_term(&self, vhost: &Arc<SharedVhost>, begin: Begin) -> Option<Moving> {
        let Begin {
            promises,
            settings,
            held,
        } = begin;
        let submitted = (!settings.is_empty()).then(|| vhost.put_settings(settings, &[]));
        (!held.is_empty() || !promises.is_empty()).then_some(Moving {
            submitted,
            promises,
            held,
        })
    }

    /// The store forgets settings once the vhost's log has them. Blocks until it has.
    pub(crate) fn forget_held(&self, name: &Arc<str>, moving: Moving) {
        let Moving {
            submitted,
            promises,
            held,
        } = moving;
        match submitted.map(Submitted::wait) {
            Some(Ok(())) if !held.is_empty() => tracing::info!(
                "vhost '{name}': its log has the settings of this node's store now: {}",
                listed(&held)
            ),
            // The store has them still, for the next term.
            Some(Err(refusal)) => return tracing::warn!("{refusal}"),
            _ => {}
        }
        let _one_at_a_time = self.metadata.begin();
        self.metadata.end_promises(&promises);
        self.metadata.forget_held(name);
        self.metadata.owed.add(held);
        self.settle_owed_later();
    }

    /// This node does not own a replicated vhost any more.
    pub(crate) fn end_term(&self, name: &str) {
        self.metadata.update(|metadata| metadata.end_term(name));
        self.put_changed_users();
    }
}

/// Settings of the store on their way to a log.
pub(crate) struct Moving {
    submitted: Option<Submitted>,
    promises: Vec<Promise>,
    held: Vec<Key>,
}

impl SharedVhost {
    /// Submits settings of a replicated vhost to its log, behind those that the node's store has if they are the log's
    /// first. Needs a tokio context.
    pub(crate) fn put_settings(
        self: &Arc<Self>,
        settings: Vec<Stored>,
        held: &[Setting],
    ) -> Submitted {
        let mut turn = self.turn(Instant::now());
        let (vhost, ..) = turn.enter();
        if let Keeper::Replicated { has_settings, .. } = &self.keeper
            && !has_settings.swap(true, Ordering::Relaxed)
        {
            vhost.put_setting(BEGUN.into(), Some("{}".into()));
            for Setting { key, value } in held {
                vhost.put_setting(key.to_string().into(), Some(value.to_string().into()));
            }
        }
        for Stored { key, value } in settings {
            vhost.put_setting(key.into(), value.map(Arc::from));
        }
        let outcome = self.commits.awaited(vhost.journal().position);
        turn.finish();
        // The node has lost the vhost meanwhile.
        if self.is_over() {
            self.commits.end("this node does not own it any more");
        }
        Submitted {
            vhost: Arc::clone(self),
            outcome,
        }
    }
}

fn listed(keys: &[Key]) -> String {
    let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
    keys.join(", ")
}
