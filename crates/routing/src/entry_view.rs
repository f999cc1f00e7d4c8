//! Subscriptions and registrations for operators, read in parts.

use std::ops::Range;

use crosstie_wamp::MatchPolicy;

use crate::events::Entry;
use crate::{Realm, Time};

/// A read-only view of a subscription or a registration.
#[derive(Clone, Copy, Debug)]
pub struct EntryView<'r> {
    /// Its id for clients.
    pub id: u64,
    pub uri: &'r str,
    pub match_policy: MatchPolicy,
    /// The invocation policy, of registrations.
    pub invoke: Option<&'static str>,
    pub created: Time,
    /// Number of sessions of this node that take part in it.
    pub members: usize,
}

impl<'r> EntryView<'r> {
    pub(crate) fn new(entry: Entry<'r>, members: usize) -> Self {
        Self {
            id: entry.id,
            uri: entry.uri,
            match_policy: entry.match_policy,
            invoke: entry.invoke,
            created: entry.created,
            members,
        }
    }
}

impl<H> Realm<H> {
    /// The subscriptions at some places of their table, out of [`Realm::subscription_places`].
    pub fn subscriptions_at(&self, places: Range<usize>) -> impl Iterator<Item = EntryView<'_>> {
        places.filter_map(|place| self.broker.at(place))
    }

    /// Size of the table of subscriptions.
    pub fn subscription_places(&self) -> usize {
        self.broker.places()
    }

    /// The registrations at some places of their table, out of [`Realm::registration_places`].
    pub fn registrations_at(&self, places: Range<usize>) -> impl Iterator<Item = EntryView<'_>> {
        places.filter_map(|place| self.dealer.at(place))
    }

    /// Size of the table of registrations.
    pub fn registration_places(&self) -> usize {
        self.dealer.places()
    }
}
