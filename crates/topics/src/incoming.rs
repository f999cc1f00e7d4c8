//! The packet identifiers and topic aliases of the messages that a client sends.

use std::sync::Arc;

use crosstie_mqtt::PacketId;

/// The incoming side of a session.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    /// Of QoS 2, in order: of the session, not of a connection.
    ids: Vec<Id>,
    /// By alias, of the present connection.
    aliases: Vec<Option<Arc<str>>>,
    alias_bytes: usize,
    /// Bytes that the session is charged for this.
    pub(crate) charged: usize,
    /// Messages of QoS 1 and 2 that came on the present connection, and whose last acknowledgement is not sent.
    pub(crate) outstanding: u16,
    /// Those of QoS 1.
    pub(crate) unacknowledged: u16,
    /// The owner does not read.
    pub(crate) is_paused: bool,
}

/// A message of QoS 2 that is not released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) id: PacketId,
    pub(crate) stage: Arrived,
    /// The connection by which it came first.
    pub(crate) came_by: u32,
    /// The last connection that has sent it: the one that waits for PUBREC.
    pub(crate) asked_by: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// The owner authorizes it.
    WithOwner,
    /// It is delivered, or waits for a commit.
    Published,
    /// PUBREC may be sent, or is.
    Answered,
}

impl Id {
    /// The owner of an earlier connection has to authorize it.
    pub(crate) fn is_with_owner_of_earlier(&self, connection: u32) -> bool {
        self.is_with_owner() && self.came_by != connection
    }

    fn is_with_owner(&self) -> bool {
        self.stage == Arrived::WithOwner
    }

    /// Whether the owner of that connection may publish or refuse it.
    pub(crate) fn awaits_verdict_of(&self, connection: u32) -> bool {
        self.is_with_owner() && self.came_by == connection
    }
}

impl Incoming {
    pub(crate) fn find(&mut self, id: PacketId) -> Option<&mut Id> {
        let at = self.ids.binary_search_by_key(&id, |one| one.id).ok()?;
        self.ids.get_mut(at)
    }

    /// Adds an identifier that is not there.
    pub(crate) fn insert(&mut self, id: Id) {
        if let Err(at) = self.ids.binary_search_by_key(&id.id, |one| one.id) {
            self.ids.insert(at, id);
        }
    }

    pub(crate) fn take(&mut self, id: PacketId) -> Option<Id> {
        let found = self.ids.binary_search_by_key(&id, |one| one.id);
        let taken = found.ok().map(|at| self.ids.remove(at));
        self.shrink();
        taken
    }

    fn shrink(&mut self) {
        if self.ids.capacity() > IDS_KEPT.max(4 * self.ids.len()) {
            self.ids.shrink_to(2 * self.ids.len());
        }
    }

    /// Bytes of memory beside the struct.
    pub(crate) fn bytes(&self) -> usize {
        let aliases = self.aliases.capacity() * size_of::<Option<Arc<str>>>();
        self.ids.capacity() * size_of::<Id>() + aliases + self.alias_bytes
    }

    pub(crate) fn remove(&mut self, id: PacketId) -> bool {
        self.take(id).is_some()
    }

    /// Removes a message whose PUBREC may have been sent; false if there is none.
    pub(crate) fn release(&mut self, id: PacketId) -> bool {
        let found = self.find(id);
        found.is_some_and(|one| one.stage == Arrived::Answered) && self.remove(id)
    }

    /// Forgets messages that came by a connection that has ended, and that its owner has not published.
    pub(crate) fn forget_unpublished(&mut self, connection: u32) {
        let is_lost = |one: &Id| one.awaits_verdict_of(connection);
        self.ids.retain(|one| !is_lost(one));
        self.shrink();
    }

    pub(crate) fn ids(&self) -> usize {
        self.ids.len()
    }

    /// Forgets what belongs to the connection alone.
    pub(crate) fn end_connection(&mut self) {
        self.aliases = Vec::new();
        self.alias_bytes = 0;
        if self.ids.is_empty() {
            self.ids = Vec::new();
        }
        self.outstanding = 0;
        self.unacknowledged = 0;
        self.is_paused = false;
    }

    /// Sets an alias, from 1 on, or unsets it.
    pub(crate) fn set_alias(&mut self, alias: u16, topic: Option<&str>) {
        let at = usize::from(alias);
        if self.aliases.len() <= at {
            self.aliases.resize(at + 1, None);
        }
        if let Some(place) = self.aliases.get_mut(at) {
            self.alias_bytes += topic.map_or(0, str::len);
            self.alias_bytes -= place.as_deref().map_or(0, str::len);
            *place = topic.map(Into::into);
        }
    }

    pub(crate) fn alias(&self, alias: u16) -> Option<&Arc<str>> {
        self.aliases.get(usize::from(alias))?.as_ref()
    }

    /// Whether nothing would be lost without it.
    pub(crate) fn is_idle(&self) -> bool {
        self.ids.is_empty() && self.aliases.is_empty() && self.outstanding == 0 && !self.is_paused
    }
}

/// The memory of fewer identifiers is kept.
const IDS_KEPT: usize = 32;
