//! The interface through which a realm sends messages and requests work of its owner.

use crosstie_wamp::{Dict, Message, PublicationId, RequestId, SessionId};

use crate::across::{Crossing, NeighbourKey, Pattern, Position, Publication, Uncrossed};
use crate::recall::Recall;
use crate::recorded::{Recorded, RetainedEvent};
use crate::{Action, Identity, Question, RefusalCause, RoleLimit, SessionKey};

/// The outputs of a realm. The realm's owner implements it.
pub trait Outbox<H> {
    /// Sends one message to one session, after all earlier ones.
    fn send(&mut self, to: &H, message: &Message<'_>) -> Result<(), Refused>;

    /// Sends one EVENT to any number of sessions. Refused ones are dropped and counted by the outbox. Implementations
    /// encode the event once per kind of receiver, if there is one.
    fn publish(&mut self, event: &Message<'_>, receivers: &mut dyn Iterator<Item = &H>);

    /// Ends a session that can no longer be served correctly (its RESULT was refused). The realm has forgotten it when
    /// the present call into the realm returns, and sends it nothing more. The owner closes it; a later `leave` of it
    /// has no effect.
    fn close(&mut self, session: &H, reason: CloseReason);

    /// Counts an event at a bound that no session is told of.
    fn note(&mut self, _what: Note, _count: usize) {}

    /// Changes the bytes that the realm holds for a session: for what it requested, such as its subscriptions.
    fn hold(&mut self, _session: &H, _delta: isize) {}

    /// Sets the bytes that the realm holds for no session: the cached decisions of authorizers.
    fn keep(&mut self, _bytes: usize) {}

    /// A session has left the realm, for any reason.
    fn left(&mut self, _session: &H, _id: SessionId, _identity: &Identity) {}

    /// A session has left the realm because another one ended it. The owner sends it GOODBYE with this reason.
    fn goodbye(&mut self, _session: &H, _reason: &str, _message: Option<&str>) {}

    /// Sessions were ended for a logout. The owner forgets their logins before it sends GOODBYE.
    fn logged_out(&mut self, _principals: LoggedOut<'_>) {}

    /// A session was resumed on another connection. The owner closes the one before, if it is open, and moves the
    /// session's held bytes to the new one.
    fn resumed(&mut self, _before: &H, _now: &H) {}

    /// Whether memory is so short that detached sessions are to be ended.
    fn is_short(&self) -> bool {
        false
    }

    /// Adds the owner's details about a session to those that the meta API returns.
    fn describe(&self, _session: &H, _details: &mut Dict) {}

    /// A session's role does not allow an action; for the audit.
    fn denied(&mut self, _denial: &Denial<'_, H>) {}

    /// An authorizer has to judge a session's message. The owner asks it the question, and passes the message again
    /// with the answer ([`crate::Realm::handle_judged`]); until then the message is not handled. Required if any role
    /// has an authorizer.
    fn ask(&mut self, _session: &H, _question: Question) {}

    /// Publishes an event to the realm's other nodes. An error refuses the publication: it may not reach only local
    /// subscribers. Other losses are dropped and counted. This method and the following ones are called only after
    /// [`crate::Realm::join_fabric`].
    fn publish_across(&mut self, _publication: &Publication<'_>) -> Result<(), Uncrossed> {
        Ok(())
    }

    /// Announces or withdraws the interest in a pattern; returns the position at which that is in force.
    fn interest(&mut self, _pattern: Pattern<'_>, _begins: bool) -> Position {
        Position(0)
    }

    /// Sends a message to one of the realm's other nodes, after all earlier ones.
    fn cross(&mut self, _to: NeighbourKey, _crossing: &Crossing<'_>) -> Result<(), Refused> {
        Err(Refused::Gone)
    }

    /// Requests the grant to have the only callee of a pattern. The owner answers by [`crate::Realm::handle_claimed`].
    /// Called only after [`crate::Realm::serve_singles_strictly`], as is the next one.
    fn claim(&mut self, _claim: u64, _pattern: Pattern<'_>) {}

    /// Releases the grant: this node has no callee of the pattern any more.
    fn give_up(&mut self, _pattern: Pattern<'_>) {}

    /// Records an event in the log with that index in [`crate::RealmConfig::history`]. Called only with
    /// [`crate::RealmConfig::is_stored`].
    fn record(&mut self, _log: usize, _event: Recorded) -> Result<(), Unrecorded> {
        Err(Unrecorded)
    }

    /// Stores a retained event, to be restored when the realm begins anew ([`crate::Realm::restore_retained`]). Called
    /// only with [`crate::RealmConfig::stores_retained`], as is the next one.
    fn retain(&mut self, _event: RetainedEvent) {}

    /// Removes the retained event with that number from the store.
    fn forget_retained(&mut self, _number: u64) {}

    /// Requests a call of [`crate::Realm::handle_stored`] once all earlier recorded and retained events are stored, or
    /// have failed.
    fn acknowledge(&mut self, _acknowledgement: Acknowledgement) {}

    /// Requests recorded events, earlier ones of this node included. The owner answers by
    /// [`crate::Realm::handle_recalled`]. The error says why there will be no answer.
    fn recall(&mut self, _recall: Recall) -> Result<(), &'static str> {
        Err("there is no store")
    }

    /// Whether publications to a topic stay on this node.
    fn is_local(&self, _topic: &str) -> bool {
        false
    }

    /// Changes the bytes that the realm holds for its other nodes.
    fn hold_across(&mut self, _delta: isize) {}
}

/// A publication whose PUBLISHED is deferred until it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    pub session: SessionKey,
    pub request: RequestId,
    pub publication: PublicationId,
}

/// The store has no room for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrecorded;

/// A refused action of a session.
#[derive(Debug)]
pub struct Denial<'d, H> {
    pub handle: &'d H,
    pub session: SessionId,
    pub identity: &'d Identity,
    pub action: Action,
    pub uri: &'d str,
    pub cause: RefusalCause,
}

/// Events at a bound of the realm, which are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Retained events were evicted for newer ones.
    RetainedEvicted,
    /// A subscription was not sent some of its retained events.
    RetainedNotSent,
    /// Recorded events were evicted early, because all of them had too many bytes.
    HistoryEvicted,
    /// An event exceeds the bound of all recorded events, and was not recorded.
    HistoryNotKept,
    /// Another node's part in a registration was refused: it is malformed, or one too many.
    OfferRefused,
    /// A question to all nodes was answered without some of them.
    AnswerPartial,
    /// Another node's entry found no room in the index: its end will not be announced if its node dies.
    EndUnknown,
    /// Another node's testament found no room here: it will not be published if that node dies.
    TestamentRefused,
    /// Another node's retained event was refused: it is malformed, too long, or from the future.
    RetainedRefused,
    /// A session was refused at a bound of its role.
    RoleLimit(RoleLimit),
}

/// Why an outbox refused a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The session's queue is full.
    Full,
    /// The session is closed already.
    Gone,
    /// The message exceeds the message size limit of the session's peer.
    TooLong,
    /// The session's serializer cannot represent the payload; the text says why.
    Unrepresentable(&'static str),
}

/// Why the owner has to close a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// An answer (RESULT, ERROR, SUBSCRIBED and the like) found the session's queue full. Without the answer the peer
    /// would wait for ever.
    ResultRefused,
    /// The session exceeds its bound of unacknowledged events, or its queue has no room for the first of them.
    Unacknowledged,
}

/// The principals whose logins are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedOut<'a> {
    Authid(&'a str),
    Authrole(&'a str),
    All,
}
