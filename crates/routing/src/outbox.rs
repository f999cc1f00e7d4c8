//! Where a realm puts what it wants sent.

use crosstie_wamp::{Dict, Message, PublicationId, RequestId, SessionId};

use crate::across::{Crossing, NeighbourKey, Pattern, Position, Publication, Uncrossed};
use crate::recall::Recall;
use crate::recorded::{Recorded, RetainedEvent};
use crate::{Action, Identity, Question, RefusalCause, RoleLimit, SessionKey};

/// The way out of a realm. The caller of the realm implements it.
pub trait Outbox<H> {
    /// Sends one message to one session, after everything sent to it before.
    fn send(&mut self, to: &H, message: &Message<'_>) -> Result<(), Refused>;

    /// Sends one EVENT to many sessions, or to none; what is refused is dropped and counted by
    /// the outbox. Implementations encode the event once per kind of receiver, when there is one.
    fn publish(&mut self, event: &Message<'_>, receivers: &mut dyn Iterator<Item = &H>);

    /// Ends a session that can no longer be served correctly (its RESULT was refused). The realm
    /// has forgotten it when the present call into the realm returns, and sends it nothing more;
    /// the owner closes it, and a later `leave` of it does nothing.
    fn close(&mut self, session: &H, reason: CloseReason);

    /// Takes note of something that reached a bound and that nobody is told of.
    fn note(&mut self, _what: Note, _count: usize) {}

    /// The realm holds so many bytes more for a session than before, or less: what stays because it
    /// asked for it, as its subscriptions do.
    fn hold(&mut self, _session: &H, _delta: isize) {}

    /// The realm keeps so many bytes that are no session's own: what its authorizers have decided.
    fn keep(&mut self, _bytes: usize) {}

    /// A session is out of the realm, whichever way: for whoever keeps account of them.
    fn left(&mut self, _session: &H, _id: SessionId, _identity: &Identity) {}

    /// A session that is out of the realm is to be told so, and why: one session has ended it for another.
    fn goodbye(&mut self, _session: &H, _reason: &str, _message: Option<&str>) {}

    /// Sessions were ended for a logout: their remembered logins are to be forgotten before GOODBYE is sent.
    fn logged_out(&mut self, _whose: LoggedOut<'_>) {}

    /// A session is another connection's from now on: the one before is to be closed, if it is not, and what is held for the
    /// session is the new one's.
    fn resumed(&mut self, _before: &H, _now: &H) {}

    /// Whether there is so little memory that sessions that wait for their clients are given up.
    fn is_short(&self) -> bool {
        false
    }

    /// Adds what the owner knows of a session to what others may be told of it.
    fn describe(&self, _session: &H, _details: &mut Dict) {}

    /// A session's role does not let it do something: for whoever keeps account of that.
    fn denied(&mut self, _denial: &Denial<'_, H>) {}

    /// The message that a session has sent is judged by an authorizer, which is to be asked this:
    /// nothing has been done about the message, which comes again with what was said
    /// ([`crate::Realm::handle_judged`]). Whoever gives a role an authorizer has to do this.
    fn ask(&mut self, _session: &H, _question: Question) {}

    /// An event is published that the realm's other nodes may have subscribers of; an error where that is no
    /// reason to let it reach those here alone. What cannot be sent without anybody's fault is dropped and
    /// counted. Said only after [`crate::Realm::join_fabric`], as what follows.
    fn publish_across(&mut self, _publication: &Publication<'_>) -> Result<(), Uncrossed> {
        Ok(())
    }

    /// The realm wants to be sent what matches a pattern, or does not any more; the position from which on that is
    /// in force.
    fn interest(&mut self, _pattern: Pattern<'_>, _begins: bool) -> Position {
        Position(0)
    }

    /// Says something to one of the realm's other nodes, after everything that was said to it before.
    fn cross(&mut self, _to: NeighbourKey, _crossing: &Crossing<'_>) -> Result<(), Refused> {
        Err(Refused::Gone)
    }

    /// A node's first callee of that is to be let in, and no other node's may be beside it: whoever may, is told by
    /// [`crate::Realm::handle_claimed`]. Said, as the next one, after [`crate::Realm::serve_singles_strictly`].
    fn claim(&mut self, _claim: u64, _pattern: Pattern<'_>) {}

    /// This node has no callee of it any more.
    fn give_up(&mut self, _pattern: Pattern<'_>) {}

    /// An event is to be recorded, in the log that has that place in [`crate::RealmConfig::history`]. Said where [`crate::RealmConfig::is_stored`].
    fn record(&mut self, _log: usize, _event: Recorded) -> Result<(), Unrecorded> {
        Err(Unrecorded)
    }

    /// An event is retained, and is to be there when the realm begins anew ([`crate::Realm::restore_retained`]); said, as
    /// the next one, where [`crate::RealmConfig::stores_retained`].
    fn retain(&mut self, _event: RetainedEvent) {}

    /// The retained event of that number is none any more.
    fn forget_retained(&mut self, _number: u64) {}

    /// When everything is stored that was recorded or retained before, or cannot be, that is for [`crate::Realm::handle_stored`].
    fn acknowledge(&mut self, _acknowledgement: Acknowledgement) {}

    /// Somebody asks for recorded events, those included that were recorded before this: the answer is for
    /// [`crate::Realm::handle_recalled`]. The error says why there will be none.
    fn recall(&mut self, _recall: Recall) -> Result<(), &'static str> {
        Err("there is no store")
    }

    /// Whether what is published to a topic stays on this node.
    fn is_local(&self, _topic: &str) -> bool {
        false
    }

    /// The realm holds so many bytes more for its other nodes than before, or less.
    fn hold_across(&mut self, _delta: isize) {}
}

/// A publication that is answered when it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    pub session: SessionKey,
    pub request: RequestId,
    pub publication: PublicationId,
}

/// A store has no room for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrecorded;

/// Something that a session may not do.
#[derive(Debug)]
pub struct Denial<'d, H> {
    pub handle: &'d H,
    pub session: SessionId,
    pub identity: &'d Identity,
    pub action: Action,
    pub uri: &'d str,
    pub cause: RefusalCause,
}

/// What became of events at a bound of the realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Retained events went to make room for newer ones.
    RetainedEvicted,
    /// A subscription went without some of the retained events that it asked for.
    RetainedNotSent,
    /// Recorded events went before their time, because all of them had too many bytes.
    HistoryEvicted,
    /// An event has more bytes than all that are recorded may have, and is not.
    HistoryNotKept,
    /// Another node's part in a registration was not taken: it is malformed, or one too many.
    OfferRefused,
    /// What was asked of all nodes is answered without some of them.
    AnswerPartial,
    /// What another node has found no room here: nobody is told when it ends with its node.
    EndUnknown,
    /// A testament that another node has handed over found no room here: it is not published if that node dies.
    TestamentRefused,
    /// An event that another node retains was not taken: it is malformed, too long, or of a time that is yet to come.
    RetainedRefused,
    /// Somebody was refused something at a bound of its role.
    RoleLimit(RoleLimit),
}

/// Why an outbox did not take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The session's queue is full.
    Full,
    /// The session is closed already.
    Gone,
    /// The message is longer than the session's peer takes.
    TooLong,
    /// The payload cannot be written in the session's serializer; the text says why.
    Unrepresentable(&'static str),
}

/// Why a session is to be closed by its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// An answer (RESULT, ERROR, SUBSCRIBED and the like) found its queue full: the peer cannot
    /// be told the truth any more, and would wait for it for ever.
    ResultRefused,
    /// It has more events to acknowledge than it may, or its queue has no room for the first of them.
    Unacknowledged,
}

/// Those whose logins are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedOut<'a> {
    Authid(&'a str),
    Authrole(&'a str),
    All,
}
