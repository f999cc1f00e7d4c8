//! Registrations as the meta API sees them.

use crosstie_wamp::{MatchPolicy, RegistrationId, Value};

use super::Dealer;
use super::registrations::Registration;
use crate::context::Context;
use crate::entry_view::EntryView;
use crate::events::{Entry, is_protected};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::keys::RegistrationKey;
use crate::meta::Entries;
use crate::session::Session;

impl Registration {
    pub(super) fn entry(&self) -> Entry<'_> {
        Entry {
            id: self.id.0,
            uri: &self.procedure,
            match_policy: self.match_policy,
            invoke: Some(self.policy().name()),
            created: self.created,
        }
    }
}

impl Dealer {
    /// The registration at a place of the table, if it can be called.
    pub(crate) fn at(&self, place: usize) -> Option<EntryView<'_>> {
        let registration = self.registrations.at(u32::try_from(place).ok()?)?;
        let view = || EntryView::new(registration.entry(), registration.callees.len());
        registration.is_served().then(view)
    }

    /// Size of the table: every registration's place is below it.
    pub(crate) fn places(&self) -> usize {
        self.registrations.places() as usize
    }

    /// The id of a registration that the session knows of, if the meta API shows that registration.
    pub(crate) fn told_id(&self, key: RegistrationKey, session: SessionIndex) -> Option<u64> {
        let registration = &self.registrations[key];
        let mut pending = registration.pending().iter();
        let is_told = !pending.any(|callee| callee.session == session);
        (is_told && !is_protected(&registration.procedure)).then_some(registration.id.0)
    }

    /// Whether this node or another one has callees of it.
    pub(crate) fn is_registered(&self, id: u64) -> bool {
        self.registrations.of_id(RegistrationId(id)).is_some()
    }
}

impl Entries for Dealer {
    const NAME: &'static str = "registration";
    const ID: &'static str = "registration_id";
    const URI: &'static str = "procedure";
    const MEMBER: &'static str = "callee_id";

    fn all(&self) -> impl Iterator<Item = Entry<'_>> {
        self.registrations.all_served().map(Registration::entry)
    }

    fn of_session<H>(&self, session: &Session<H>) -> Vec<Entry<'_>> {
        let keys = session.registrations.some(usize::MAX).into_iter();
        let all = keys.map(|key| &self.registrations[key]);
        let here = all.filter(|registration| !registration.callees.is_empty());
        here.map(Registration::entry).collect()
    }

    fn find(&self, id: u64) -> Option<Entry<'_>> {
        let key = self.registrations.of_id(RegistrationId(id))?;
        let registration = &self.registrations[key];
        registration.is_served().then(|| registration.entry())
    }

    fn lookup(&self, policy: MatchPolicy, uri: &str) -> Option<u64> {
        let key = self.registrations.value(policy, uri)?;
        self.find(self.registrations[key].id.0)
            .map(|entry| entry.id)
    }

    /// The registration that a call would reach; null if there is none.
    fn matching(&self, uri: &str, steps: &mut u32) -> Value {
        let exact = self.registrations.exact(uri);
        let best: Option<RegistrationKey> =
            exact.or_else(|| self.registrations.best_pattern(uri, steps));
        let best = best.and_then(|key| self.find(self.registrations[key].id.0));
        best.map_or(Value::Null, |entry| Value::from(entry.id))
    }

    fn members(&self, id: u64) -> impl Iterator<Item = SessionIndex> {
        let key = self.registrations.of_id(RegistrationId(id));
        key.into_iter()
            .flat_map(|key| self.registrations.callees(key))
    }

    fn revoke<H>(
        &mut self,
        context: &mut Context<'_, H>,
        id: u64,
        callee: SessionIndex,
        reason: Option<&str>,
    ) -> bool {
        let registration = RegistrationId(id);
        self.registrations
            .revoke_from(context, registration, callee, reason)
    }

    fn no_such(id: u64) -> Fault {
        let text = format!("no registration with ID {id} exists on this dealer");
        Fault::new(error::NO_SUCH_REGISTRATION, text)
    }

    fn no_member(id: u64, session: u64) -> Fault {
        let text =
            format!("session {session} is not registered on registration {id} on this dealer");
        Fault::new(error::NO_SUCH_REGISTRATION, text)
    }
}
