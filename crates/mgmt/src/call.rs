//! A request as its endpoint sees it, and the API that it comes to.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crosstie_broker::vhost::SharedVhost;
use crosstie_broker::{OperatorError, Operators};
use tokio::sync::Semaphore;

use crate::answer::Answer;
use crate::caller::Caller;
use crate::request::{Head, Query};
use crate::sampler::Sampler;
use crate::surroundings::Surroundings;

/// The API of one broker.
pub struct Api {
    pub(crate) operators: Operators,
    pub(crate) surroundings: Arc<dyn Surroundings>,
    pub(crate) logins: Logins,
    /// Imports of definitions are one at a time.
    pub(crate) importing: Arc<Semaphore>,
    pub(crate) sampler: Arc<Sampler>,
}

/// The attempts to log in since the start.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    pub(crate) succeeded: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// A request, as its endpoint sees it.
pub(crate) struct Call<'c> {
    pub(crate) api: &'c Arc<Api>,
    pub(crate) caller: &'c Caller,
    pub(crate) query: Query,
    pub(crate) head: &'c Head,
    /// Maximum bytes of an answer that cannot be repeated, as it takes messages away.
    pub(crate) answer_bytes_max: usize,
}

impl Api {
    pub fn new(operators: Operators, surroundings: Arc<dyn Surroundings>) -> Arc<Self> {
        Arc::new(Self {
            operators,
            surroundings,
            logins: Logins::default(),
            importing: Arc::new(Semaphore::new(1)),
            sampler: Arc::default(),
        })
    }
}

impl Call<'_> {
    /// The open vhosts that the user sees.
    pub(crate) fn visible_vhosts(&self) -> Vec<Arc<SharedVhost>> {
        let mut vhosts = self.api.operators.open_vhosts();
        vhosts.retain(|vhost| self.caller.sees(vhost.name()));
        vhosts
    }

    /// The vhost of that name, or all that the user sees.
    pub(crate) fn vhosts(&self, name: Option<&str>) -> Result<Vec<Arc<SharedVhost>>, Answer> {
        match name {
            None => Ok(self.visible_vhosts()),
            Some(name) => self
                .vhost(name)
                .map(|vhost| vec![vhost])
                .map_err(|_| Answer::not_found()),
        }
    }

    pub(crate) fn vhost(&self, name: &str) -> Result<Arc<SharedVhost>, OperatorError> {
        self.api.operators.open_vhost(name)
    }
}
