//! The receivers of a publication (WAMP advanced profile, "Subscriber Black- and Whitelisting").

use crosstie_wamp::{Receivers, SessionId};

use crate::EmptyEligible;
use crate::context::Context;
use crate::identity::SessionIndex;
use crate::session::Session;
use crate::session_set::SessionSet;

/// The six lists of one publication, sorted: they may be as long as a message, and are searched once per subscriber.
pub(super) struct Filter<'p> {
    /// If set, only the shard of this resource receives the event.
    pub(super) resource: Option<u64>,
    /// Whether a session that subscribes for others may pass the event on: no list can say which of them may have it.
    is_for_others: bool,
    eligible: Option<Vec<SessionIndex>>,
    eligible_authid: Option<Vec<&'p str>>,
    eligible_authrole: Option<Vec<&'p str>>,
    exclude: Option<Vec<SessionIndex>>,
    exclude_authid: Option<Vec<&'p str>>,
    exclude_authrole: Option<Vec<&'p str>>,
}

impl<'p> Filter<'p> {
    pub(super) fn new<H>(
        lists: &'p Receivers,
        from: Option<SessionIndex>,
        context: &Context<'_, H>,
    ) -> Self {
        let (sessions, empty) = (&*context.sessions, context.config.empty_eligible);
        // Ids of sessions that do not exist have no effect.
        let known = |ids: &Vec<SessionId>| {
            let mut known: Vec<_> = ids.iter().filter_map(|id| sessions.find_id(*id)).collect();
            known.sort_unstable();
            known.dedup();
            known
        };
        let sorted = |names: &'p Vec<String>| {
            let mut sorted: Vec<_> = names.iter().map(String::as_str).collect();
            sorted.sort_unstable();
            sorted
        };
        let is_elsewhere = |id: &SessionId| {
            let index = sessions.find_id(*id);
            index.is_some_and(|index| sessions[index].features.subscribes_elsewhere())
        };
        // The part of the router that receives events for such a publisher knows the publication.
        let is_from_elsewhere =
            from.is_some_and(|from| sessions[from].features.subscribes_elsewhere());
        Self {
            resource: None,
            is_for_others: !is_from_elsewhere
                && !names_receivers(lists, empty)
                && !lists.exclude.iter().flatten().any(is_elsewhere),
            eligible: whitelist(&lists.eligible, empty).map(known),
            eligible_authid: whitelist(&lists.eligible_authid, empty).map(sorted),
            eligible_authrole: whitelist(&lists.eligible_authrole, empty).map(sorted),
            exclude: lists.exclude.as_ref().map(known),
            exclude_authid: lists.exclude_authid.as_ref().map(sorted),
            exclude_authrole: lists.exclude_authrole.as_ref().map(sorted),
        }
    }

    /// The subscribers for [`Filter::admits`] to check. A publication to one of a hundred thousand subscribers checks
    /// only that one.
    pub(super) fn candidates<'a>(
        &'a self,
        subscribers: &'a SessionSet,
    ) -> impl Iterator<Item = SessionIndex> + 'a {
        let few = self
            .eligible
            .as_ref()
            .filter(|eligible| eligible.len() < subscribers.len());
        let all = few.is_none().then_some(subscribers);
        let few = few
            .into_iter()
            .flatten()
            .filter(|index| subscribers.contains(index));
        few.chain(all.into_iter().flatten()).copied()
    }

    pub(super) fn admits<H>(&self, index: SessionIndex, session: &Session<H>) -> bool {
        fn lists<T: Ord>(list: Option<&Vec<T>>, item: &T, when_absent: bool) -> bool {
            list.map_or(when_absent, |list| list.binary_search(item).is_ok())
        }
        if session.features.subscribes_for_others() && !self.is_for_others {
            return false;
        }
        let authid = &*session.identity.authid;
        let authrole = &*session.identity.authrole;
        lists(self.eligible.as_ref(), &index, true)
            && lists(self.eligible_authid.as_ref(), &authid, true)
            && lists(self.eligible_authrole.as_ref(), &authrole, true)
            && !lists(self.exclude.as_ref(), &index, false)
            && !lists(self.exclude_authid.as_ref(), &authid, false)
            && !lists(self.exclude_authrole.as_ref(), &authrole, false)
    }
}

/// Whether some list but that of excluded sessions decides on receivers.
pub(super) fn names_receivers(lists: &Receivers, empty: EmptyEligible) -> bool {
    let is_listed = |names: &Option<Vec<String>>| names.as_ref().is_some_and(|n| !n.is_empty());
    whitelist(&lists.eligible, empty).is_some()
        || whitelist(&lists.eligible_authid, empty).is_some()
        || whitelist(&lists.eligible_authrole, empty).is_some()
        || is_listed(&lists.exclude_authid)
        || is_listed(&lists.exclude_authrole)
}

/// A whitelist, unless it counts as absent.
pub(super) fn whitelist<T>(list: &Option<Vec<T>>, empty: EmptyEligible) -> Option<&Vec<T>> {
    let counts = |list: &&Vec<T>| empty == EmptyEligible::Nobody || !list.is_empty();
    list.as_ref().filter(counts)
}
