//! Imports definitions into the running broker: the entries as one change, then the declarations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

use crosstie_config::{Definitions, Present, Skipped};
use crosstie_metadata::{Change, Metadata, Refusal, RefusalKind, VhostLimit};
use crosstie_queues::{Fault, Time, Vhost};

use super::declarations::{Declaration, declarations};
use super::entries::{changes, invalid};
use crate::broker::Broker;
use crate::limits::vhost_config;
use crate::shared::STORE_WAIT_MAX;
use crate::vhost::SharedVhost;

impl Broker {
    /// Imports definitions, or checks them only; with `only`, into that vhost. Nothing is applied if something in them is
    /// wrong, names an absent vhost or user, or contradicts the configuration. Returns what is left out: what this broker
    /// does not have, and declarations that the present objects refuse.
    ///
    /// Waits for the store, and needs a tokio context.
    pub(crate) fn import(
        self: &Arc<Self>,
        json: &[u8],
        only: Option<&str>,
        is_check: bool,
    ) -> Result<Vec<Skipped>, Refusal> {
        let _one_import_at_a_time = self.metadata.importing.lock();
        // Other changes do not wait while the file is read, nor while it is declared.
        let now = self.metadata.now();
        let vhosts: BTreeSet<_> = now.vhosts().cloned().collect();
        if only.is_some_and(|only| !vhosts.contains(only)) {
            return Err(Refusal::new(RefusalKind::NoVhost, "vhost_not_found"));
        }
        let present = Present {
            vhosts: &vhosts,
            only,
        };
        let definitions = Definitions::parse_for(json, present).map_err(invalid)?;
        let mut skipped = definitions.skipped.clone();
        self.check_declarations(&definitions, &now)?;
        let change = self.metadata.begin();
        let before = self.follow_vhosts();
        let changes = changes(&definitions, &before, &mut skipped)?;
        let applied = before.apply(Change::All(changes), &mut crate::metadata::salt);
        let (next, applied) = applied.map_err(|refusal| self.named(refusal))?;
        self.check_room(&definitions, &next)?;
        if is_check {
            return Ok(skipped);
        }
        let completed = self.complete(next, applied)?;
        drop(change);
        completed.wait(self)?;
        skipped.extend(self.declare(&definitions)?);
        Ok(skipped)
    }

    /// Declares exchanges and queues in empty vhosts: what fails there contradicts itself, or another of the file.
    fn check_declarations(
        &self,
        definitions: &Definitions,
        before: &Metadata,
    ) -> Result<(), Refusal> {
        let limits = self.limits();
        let mut vhosts: BTreeMap<&str, Vhost<()>> = BTreeMap::new();
        for declaration in declarations(definitions) {
            let name = declaration.vhost();
            if !vhosts.contains_key(name) {
                if before.has_vhost(name) {
                    self.vhost(name).map_err(|ownership| {
                        Refusal::new(RefusalKind::Unsupported, ownership.refusal(name))
                    })?;
                }
                let mut config = vhost_config(&name.into(), &limits);
                config.has_streams = self.has_store() && !before.is_replicated(name);
                vhosts.insert(name, Vhost::new(config, 0));
            }
            // A binding may be between objects that are there already.
            if matches!(declaration, Declaration::Binding(_)) {
                continue;
            }
            if let Some(vhost) = vhosts.get_mut(name) {
                let declared = declaration.declare(Time(0), vhost);
                declared.map_err(|fault| invalid(reason(&fault)))?;
            }
        }
        Ok(())
    }

    /// Checks that each vhost may have the queues that are new.
    fn check_room(&self, definitions: &Definitions, next: &Metadata) -> Result<(), Refusal> {
        let queues_max = self.limits().queues_max;
        let mut queues: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for queue in &definitions.queues {
            let of_vhost = queues.entry(&queue.vhost).or_default();
            of_vhost.insert(&queue.name);
        }
        for (name, queues) in queues {
            let limit = next.vhost_limit(name, VhostLimit::Queues);
            let max = limit.unwrap_or(queues_max).min(queues_max);
            let (present, new) = match self.vhost(name) {
                Ok(vhost) => vhost.count_new(&queues),
                Err(_) => (0, queues.len()),
            };
            if new > 0 && present + new > max {
                return Err(invalid(format!(
                    "cannot declare {new} queues beside {present}: queue limit in vhost '{name}' ({max}) is reached"
                )));
            }
        }
        Ok(())
    }

    /// Declares all, and waits until the store has them. Returns those that are refused.
    fn declare(&self, definitions: &Definitions) -> Result<Vec<Skipped>, Refusal> {
        let mut by_vhost: BTreeMap<&str, Vec<Declaration<'_>>> = BTreeMap::new();
        for declaration in declarations(definitions) {
            let of_vhost = by_vhost.entry(declaration.vhost()).or_default();
            of_vhost.push(declaration);
        }
        let mut skipped = Vec::new();
        for (name, declarations) in by_vhost {
            // A vhost may have been deleted, or moved to another node, meanwhile.
            let vhost = self.vhost(name).map_err(|ownership| {
                Refusal::new(RefusalKind::NotStored, ownership.refusal(name))
            })?;
            skipped.extend(vhost.declare(&declarations)?);
        }
        Ok(skipped)
    }
}

/// The text without the name of the code, as the management API has it.
fn reason(fault: &Fault) -> String {
    let code = format!("{} - ", fault.code);
    let text = fault.text.strip_prefix(&code);
    text.unwrap_or(&fault.text).to_owned()
}

/// Names that are looked up under one lock.
const NAMES_MAX: usize = 256;

impl SharedVhost {
    /// The number of queues, and of names that no queue has.
    fn count_new(&self, names: &BTreeSet<&str>) -> (usize, usize) {
        let names: Vec<_> = names.iter().collect();
        let mut new = 0;
        for part in names.chunks(NAMES_MAX) {
            let vhost = self.lock();
            new += part.iter().filter(|name| !vhost.has_queue(name)).count();
        }
        (self.status().queues, new)
    }

    /// Declares in turns with other work, and waits until it is stored.
    fn declare(
        self: &Arc<Self>,
        declarations: &[Declaration<'_>],
    ) -> Result<Vec<Skipped>, Refusal> {
        let mut skipped = Vec::new();
        let mut stored = None;
        let mut left = declarations.iter().peekable();
        while left.peek().is_some() {
            let mut turn = self.turn(Instant::now());
            for declaration in left.by_ref() {
                skipped.extend(declaration.remark());
                let (vhost, now, _) = turn.enter();
                if let Err(fault) = declaration.declare(now, vhost) {
                    skipped.push(declaration.skipped(fault.text));
                }
                if turn.spend() {
                    break;
                }
            }
            let (vhost, ..) = turn.enter();
            let journal = vhost.journal();
            if !journal.records.is_empty() || !journal.streams.is_empty() {
                stored = Some(self.commits.awaited(journal.position));
            }
            turn.finish();
        }
        let why = match stored.map(|stored| stored.recv_timeout(STORE_WAIT_MAX)) {
            None | Some(Ok(Ok(()))) => return Ok(skipped),
            Some(Ok(Err(why))) => why,
            Some(Err(RecvTimeoutError::Timeout)) => "the store is busy".to_owned(),
            Some(Err(RecvTimeoutError::Disconnected)) => "the router is being stopped".to_owned(),
        };
        let name = self.name();
        let reason = format!(
            "what is declared in vhost '{name}' is there, and kept once the store can write: {why}"
        );
        Err(Refusal::new(RefusalKind::NotStored, reason))
    }
}
