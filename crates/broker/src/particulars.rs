//! What a broker states of itself to operators.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crosstie_config as model;

use super::identity;

/// A broker's configured identity, and its place.
#[derive(Clone, Debug)]
pub struct Particulars {
    pub product: String,
    pub version: String,
    pub cluster_name: String,
    /// The directory of the store.
    pub store: PathBuf,
    started: Instant,
}

impl Particulars {
    pub(super) fn of(amqp: &model::Amqp, directory: &Path) -> Self {
        Self {
            product: amqp.identity.product.clone(),
            version: amqp.identity.version.clone(),
            cluster_name: identity::cluster_name(&amqp.identity),
            store: directory.join(&amqp.store),
            started: Instant::now(),
        }
    }

    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}
