//! The configuration in force, the way to read it again, and pending reloads.

use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_config::{Config, Tree};

use super::order::ReloadOrder;
use crate::event::{Event, Events};

/// The configuration's file, as it was read, and the way to read it again.
#[derive(Clone)]
pub struct ReloadSource {
    /// What the configuration in force was made from.
    pub tree: Tree,
    /// Reads and checks the file, and the files that it names. An error is a text for the operator.
    pub load: Arc<dyn Fn() -> Result<(Config, Tree), String> + Send + Sync>,
    /// Applies the options of the command line.
    pub adapt: Arc<dyn Fn(&mut Config) + Send + Sync>,
}

/// Has a node read its configuration anew.
#[derive(Clone)]
pub struct Reloader(Events);

/// The configuration in force, and pending reloads.
pub(crate) struct Reloads {
    pub(super) source: Option<ReloadSource>,
    pub(crate) config: Config,
    pub(super) is_running: bool,
    pub(super) waiting: VecDeque<ReloadOrder>,
}

impl Reloader {
    pub(crate) fn new(events: Events) -> Self {
        Self(events)
    }

    /// Requests a reload, without an answer: the log has its outcome.
    pub fn reload(&self) {
        let order = ReloadOrder {
            is_dry: false,
            is_partial: false,
            reply: None,
        };
        // A node that has ended ignores it.
        let _ = self.0.send(Event::Reload(order));
    }
}

impl Reloads {
    pub(crate) fn is_running(&self) -> bool {
        self.is_running
    }

    pub(crate) fn new(config: &Config, source: Option<ReloadSource>) -> Self {
        Self {
            source,
            config: config.clone(),
            is_running: false,
            waiting: VecDeque::new(),
        }
    }
}
