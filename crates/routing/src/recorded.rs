//! A recorded publication, independent of its storage.

use crosstie_wamp::{Dict, PublicationId, Receivers, Serializer, SessionId};

use crate::identity::Identity;
use crate::weight::dict_bytes;

/// Approximate memory of an event beside its bytes.
const EVENT_BYTES: usize = 256;

/// A recorded publication.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    pub publication: PublicationId,
    /// When it was published, in microseconds since 1970.
    pub unix_us: u64,
    /// The publisher, if disclosed.
    pub publisher: Option<(SessionId, Identity)>,
    pub topic: Box<str>,
    /// The authids and authroles that may receive it; `None` means all.
    pub receivers: Option<Box<Receivers>>,
    pub passthru: Option<Box<Dict>>,
    pub serializer: Serializer,
    /// Arguments, then keyword arguments.
    pub payload: Box<[u8]>,
    pub args_bytes: usize,
}

/// A retained event, for a store.
#[derive(Clone, Debug, PartialEq)]
pub struct RetainedEvent {
    /// Later ones have higher numbers.
    pub number: u64,
    /// When it expires, in microseconds since 1970.
    pub ends_us: Option<u64>,
    pub event: Recorded,
}

impl Recorded {
    /// Its weight against bounds.
    pub fn bytes(&self) -> usize {
        let (receivers, passthru) = (self.receivers.as_deref(), self.passthru.as_deref());
        weight(passthru, &self.topic, self.payload.len(), receivers)
    }

    /// Whether its lists admit a session of that authid and authrole.
    pub(crate) fn admits(&self, authid: &str, authrole: &str) -> bool {
        let Some(lists) = self.receivers.as_deref() else {
            return true;
        };
        let named = |list: &Option<Vec<String>>, name: &str, absent: bool| {
            list.as_ref()
                .map_or(absent, |list| list.iter().any(|listed| listed == name))
        };
        named(&lists.eligible_authid, authid, true)
            && named(&lists.eligible_authrole, authrole, true)
            && !named(&lists.exclude_authid, authid, false)
            && !named(&lists.exclude_authrole, authrole, false)
    }
}

/// The weight of an event against bounds.
pub(crate) fn weight(
    passthru: Option<&Dict>,
    topic: &str,
    payload_bytes: usize,
    receivers: Option<&Receivers>,
) -> usize {
    let ids = |list: &Option<Vec<SessionId>>| list.as_ref().map_or(0, Vec::len) * size_of::<u64>();
    let names = |list: &Option<Vec<String>>| {
        let names = list.iter().flatten();
        names
            .map(|name| name.len() + size_of::<String>())
            .sum::<usize>()
    };
    let lists = receivers.map_or(0, |lists| {
        ids(&lists.eligible)
            + ids(&lists.exclude)
            + names(&lists.eligible_authid)
            + names(&lists.eligible_authrole)
            + names(&lists.exclude_authid)
            + names(&lists.exclude_authrole)
    });
    let passthru = passthru.map_or(0, dict_bytes);
    EVENT_BYTES + topic.len() + payload_bytes + lists + passthru
}
