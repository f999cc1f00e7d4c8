//! The policies of a vhost that runs, and how far they have been applied.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Applied, Policies, PolicySubject};

#[derive(Debug, Default)]
pub(crate) struct CurrentPolicies {
    policies: Arc<Policies>,
    /// One for all queues and exchanges with the same two policies, by the places of these.
    shared: HashMap<(Option<usize>, Option<usize>), Arc<Applied>>,
    walk: Option<Walk>,
}

/// The objects that the policies have not been applied to yet, by the places in their tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    Exchanges {
        from: usize,
    },
    Queues {
        from: usize,
    },
    /// The channels, whose deliveries may have become too old.
    Channels {
        from: usize,
    },
}

impl CurrentPolicies {
    /// Replaces the policies; returns whether there is any change, so that they are to be applied.
    pub(crate) fn set(&mut self, policies: Arc<Policies>) -> bool {
        if self.policies == policies {
            return false;
        }
        self.policies = policies;
        self.shared = HashMap::new();
        self.walk = Some(Walk::Exchanges { from: 0 });
        true
    }

    pub(crate) fn policies(&self) -> &Arc<Policies> {
        &self.policies
    }

    /// What applies to a queue or exchange; `None`: nothing.
    pub(crate) fn apply(&mut self, subject: PolicySubject<'_>) -> Option<Arc<Applied>> {
        let (user, operator) = self.policies.find(subject);
        if (user, operator) == (None, None) {
            return None;
        }
        let policies = &self.policies;
        let shared = self.shared.entry((user, operator));
        let shared = shared.or_insert_with(|| Arc::new(policies.applied(user, operator)));
        Some(Arc::clone(shared))
    }

    pub(crate) fn are_none(&self) -> bool {
        self.policies.is_empty()
    }

    #[inline]
    pub(crate) fn is_applying(&self) -> bool {
        self.walk.is_some()
    }

    pub(crate) fn walk(&self) -> Option<Walk> {
        self.walk
    }

    pub(crate) fn go_on(&mut self, walk: Option<Walk>) {
        self.walk = walk;
    }
}
