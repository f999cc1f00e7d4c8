//! Reloads: the configuration is read anew, compared with the one in force, and applied.
//!
//! ```text
//! SIGHUP, `crossbar.reload` ─▶ Event::Reload ─▶ a thread reads and checks the file ─▶ Event::Loaded
//!      ─▶ the difference, key by key ─▶ refused whole, or made ready ─▶ put in force
//! ```
//!
//! One reload runs at a time, and others wait. Everything that may fail happens before anything in force changes: new
//! addresses are bound, new realms and routers are started, and all of it ends again if any of it fails.

mod apply;
mod changed_router;
mod live;
mod order;
mod state;

use std::sync::Arc;

use crosstie_config::{Change, Config, Difference, Json, Tree};
use serde_json::json;
use tracing::{error, info, warn};

use self::apply::Applied;
pub(crate) use self::order::ReloadOrder;
pub(crate) use self::state::Reloads;
pub use self::state::{ReloadSource, Reloader};
use crate::event::Event;
use crate::management::Answer;
use crate::management::errors::{self, Refusal};
use crate::node::Node;

/// Number of changes that the log lists.
const LOGGED_MAX: usize = 50;

impl Node {
    /// Begins a reload, or has it wait for the present one.
    pub(crate) fn handle_reload(&mut self, order: ReloadOrder) {
        if self.is_ending() {
            return answer(order, Err(errors::ending()));
        }
        let source = self.reloads.source.as_ref();
        let Some(load) = source.map(|source| Arc::clone(&source.load)) else {
            let text = "the node runs on its embedded default, which has no file to be read anew";
            if is_signal(&order) {
                // As after every rotation of its log.
                return info!("{text}");
            }
            return answer(order, Err(errors::no_such_object(text)));
        };
        let may_change = self
            .check_not_draining()
            .and_then(|()| self.check_not_upgrading());
        if let Err(refusal) = may_change {
            return answer(order, Err(refusal));
        }
        if self.reloads.is_running {
            // One that waits reads the file as it is then.
            if !(is_signal(&order) && self.reloads.waiting.iter().any(is_signal)) {
                self.reloads.waiting.push_back(order);
            }
            return;
        }
        self.reloads.is_running = true;
        let events = self.events.clone();
        tokio::spawn(async move {
            let loaded = tokio::task::spawn_blocking(move || load()).await;
            let loaded = loaded
                .unwrap_or_else(|error| Err(error.to_string()))
                .map(Box::new);
            // A node that has ended ignores it.
            let _ = events.send(Event::Loaded { order, loaded });
        });
    }

    /// Compares what was read, and applies it.
    pub(crate) fn handle_loaded(
        &mut self,
        order: ReloadOrder,
        loaded: Result<Box<(Config, Tree)>, String>,
    ) {
        let outcome = match (self.is_ending(), loaded) {
            (true, _) => Err(errors::ending()),
            (_, Err(text)) => Err(errors::invalid_configuration(&text)),
            (_, Ok(loaded)) => self.check_not_draining().and_then(|()| {
                let (config, tree) = *loaded;
                self.reload(&order, config, &tree)
            }),
        };
        if !order.is_dry {
            self.router_options.overview.note_reload(outcome.is_ok());
        }
        answer(order, outcome);
        self.reloads.is_running = false;
        if let Some(next) = self.reloads.waiting.pop_front() {
            self.handle_reload(next);
        }
    }

    fn reload(&mut self, order: &ReloadOrder, config: Config, tree: &Tree) -> Answer {
        let Some(source) = &self.reloads.source else {
            return Err(errors::ending());
        };
        let adapt = Arc::clone(&source.adapt);
        let difference = Difference::between(&source.tree, tree);
        let restarts: Vec<&Change> = difference.restarts().collect();
        let mut told = json!({
            "applied": false,
            "changes": difference.changes.iter().map(Change::to_json).collect::<Vec<_>>(),
            "needs_restart": restarts.iter().map(|change| &change.path).collect::<Vec<_>>(),
            "troubles": Json::Array(Vec::new()),
            "certificates": 0,
        });
        if !order.is_partial && !restarts.is_empty() {
            return match order.is_dry {
                true => Ok(told),
                false => Err(needs_restart(&restarts)),
            };
        }
        let (mut target, target_tree) = match restarts.is_empty() {
            true => (config, tree.clone()),
            false => difference.partial().map_err(|why| {
                let text = format!("without {}: {}", listed(&restarts), why.join("; "));
                errors::invalid_configuration(&text)
            })?,
        };
        adapt(&mut target);
        live::check(&self.reloads.config, &mut target)
            .map_err(|text| errors::needs_restart(&format!("{text}; nothing was applied")))?;
        if order.is_dry {
            return Ok(told);
        }
        let Applied {
            troubles,
            certificates,
            is_console_former,
        } = self
            .apply(&target)
            .map_err(|text| errors::cannot_start(&format!("{text}; nothing was applied")))?;
        if is_console_former {
            target.console.clone_from(&self.reloads.config.console);
        }
        self.reloads.config = target;
        if let Some(source) = &mut self.reloads.source {
            source.tree = target_tree;
        }
        told["certificates"] = certificates.into();
        log(&difference.changes, &restarts);
        for trouble in &troubles {
            error!("Configuration reloaded, but {trouble}");
        }
        told["applied"] = true.into();
        told["troubles"] = troubles.into();
        Ok(told)
    }
}

fn is_signal(order: &ReloadOrder) -> bool {
    order.reply.is_none()
}

fn answer(order: ReloadOrder, outcome: Answer) {
    if let Err(Refusal { text, .. }) = &outcome
        && !order.is_dry
    {
        error!("The configuration was not reloaded: {text}");
    }
    if let Some(reply) = order.reply {
        // The caller may have gone.
        let _ = reply.send(outcome);
    }
}

fn needs_restart(changes: &[&Change]) -> Refusal {
    let text = format!(
        "{} a restart of the node: {}; nothing was applied, and a partial reload (`crosstie reload --partial`) applies \
         the rest",
        if changes.len() == 1 {
            "a change needs"
        } else {
            "changes need"
        },
        listed(changes)
    );
    errors::needs_restart(&text)
}

/// The keys of the first changes.
fn listed(changes: &[&Change]) -> String {
    const NAMED_MAX: usize = 10;
    let named = changes.iter().take(NAMED_MAX);
    let mut text = named
        .map(|change| change.path.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    if changes.len() > NAMED_MAX {
        text = format!("{text} and {} more", changes.len() - NAMED_MAX);
    }
    text
}

fn log(changes: &[Change], restarts: &[&Change]) {
    for change in changes.iter().take(LOGGED_MAX) {
        info!("Reload: {change}");
    }
    if changes.len() > LOGGED_MAX {
        info!("Reload: {} more changes", changes.len() - LOGGED_MAX);
    }
    match restarts.len() {
        0 => info!("Configuration reloaded, changes: {}", changes.len()),
        left => warn!(
            "Configuration reloaded in part, changes: {}; left out, as they need a restart: {left}",
            changes.len() - left
        ),
    }
}
