//! Entries of messages leave sessions, and the bytes that sessions are charged.

use crosstie_mqtt::topic;

use crate::ledger::Ledger;
use crate::outgoing::Entry;
use crate::session::Session;
use crate::{Outbox, Record};

/// Bytes of a session beside its client identifier, of a subscription beside its filter, and of an entry beside its message and
/// identifiers.
const SESSION_BYTES: isize = 240;
const SUBSCRIPTION_BYTES: isize = 140;
const ENTRY_BYTES: isize = 64;

/// Bytes of a filter's level beyond the first ones, which several filters mostly share.
const LEVEL_BYTES: isize = 96;
const LEVELS_SHARED: usize = 4;

/// Bytes of a session without subscriptions.
pub(super) fn session_bytes(client_id: &str) -> isize {
    SESSION_BYTES + client_id.len() as isize
}

/// Bytes of a subscription.
pub(super) fn subscription_bytes(filter: &str) -> isize {
    let levels = topic::levels(filter).count().saturating_sub(LEVELS_SHARED);
    SUBSCRIPTION_BYTES + filter.len() as isize + levels as isize * LEVEL_BYTES
}

/// Bytes of an entry beside its message.
pub(super) fn entry_bytes(entry: &Entry) -> isize {
    ENTRY_BYTES + entry.identifiers.bytes() as isize
}

/// Changes the bytes of a session.
pub(super) fn charge<H>(
    session: &mut Session<H>,
    delta: isize,
    ledger: &mut Ledger,
    outbox: &mut impl Outbox<H>,
) {
    session.held = session.held.saturating_add_signed(delta);
    match &session.link {
        Some(link) => outbox.hold(link, delta),
        None => ledger.keep(delta),
    }
}

/// Charges a session for the identifiers and aliases of its incoming messages.
pub(super) fn charge_incoming<H>(
    session: &mut Session<H>,
    ledger: &mut Ledger,
    outbox: &mut impl Outbox<H>,
) {
    if let Some(incoming) = &mut session.incoming {
        let bytes = incoming.bytes();
        let delta = bytes as isize - incoming.charged as isize;
        incoming.charged = bytes;
        if delta != 0 {
            charge(session, delta, ledger, outbox);
        }
    }
}

/// Notes that a message with a new topic alias is on its way, and charges the session for the alias.
pub(super) fn add_alias<H>(
    session: &mut Session<H>,
    topic: &str,
    ledger: &mut Ledger,
    outbox: &mut impl Outbox<H>,
) {
    let aliases = session.rare.as_mut().and_then(|rare| rare.aliases.as_mut());
    if let Some(aliases) = aliases {
        let bytes = aliases.add(topic);
        charge(session, bytes as isize, ledger, outbox);
    }
}

/// Forgets the topic aliases of a connection.
pub(super) fn forget_aliases<H>(
    session: &mut Session<H>,
    ledger: &mut Ledger,
    outbox: &mut impl Outbox<H>,
) {
    let aliases = session.rare.as_mut().and_then(|rare| rare.aliases.take());
    if let Some(aliases) = aliases {
        session.tidy();
        charge(session, -(aliases.bytes() as isize), ledger, outbox);
    }
}

/// Removes an entry of a session with its record.
pub(super) fn remove_entry<H>(
    session: &mut Session<H>,
    at: usize,
    ledger: &mut Ledger,
    outbox: &mut impl Outbox<H>,
) -> Option<Entry> {
    let entry = session.outgoing.as_mut()?.remove(at)?;
    release_entry(session, &entry, ledger, outbox);
    Some(entry)
}

/// Removes the record and the bytes of an entry that has left its session.
pub(super) fn release_entry<H>(
    session: &mut Session<H>,
    entry: &Entry,
    ledger: &mut Ledger,
    outbox: &mut impl Outbox<H>,
) {
    ledger.release(&entry.message);
    ledger.counts.queued -= 1;
    if session.is_recorded() {
        ledger.record(Record::Departed {
            session: session.number,
            place: entry.place,
        });
        ledger.release_stored(&entry.message);
    }
    charge(session, -entry_bytes(entry), ledger, outbox);
}
