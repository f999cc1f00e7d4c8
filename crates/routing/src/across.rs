//! What a realm shares with others of its name on other nodes: events, and what it wants to be sent.

use std::borrow::Cow;

use crosstie_wamp::{
    Disclosed, InvocationPolicy, MatchPolicy, Message, Payload, PublicationId, PublishOptions,
    SessionId,
};

/// An event on its way from the node where it was published to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Publication<'m> {
    pub id: PublicationId,
    /// Who published, where that may be told.
    pub publisher: Option<Disclosed<'m>>,
    /// Its lists of receivers are for every node to apply to its own sessions.
    pub options: &'m PublishOptions,
    pub topic: &'m str,
    pub payload: Payload<'m>,
    /// How it is retained on all nodes, where it is.
    pub retained: Option<RetainedAs>,
}

/// How an event is retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetainedAs {
    /// Of two events that cannot be beside each other the one with the higher number stays.
    pub number: u64,
    /// When it ends by itself, in microseconds since 1970.
    pub ends_us: Option<u64>,
}

/// What a subscription is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern<'m> {
    pub match_policy: MatchPolicy,
    pub topic: &'m str,
}

/// How far other nodes know what this one wants. Whatever was wanted at a position is sent from when that has been
/// [reached](crate::Realm::handle_in_force); 0 always has been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// Why an event cannot be published: it would reach some of those whom it should, and not all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncrossed {
    /// Other nodes cannot be reached.
    Detached,
    /// What is between the nodes does not take so much.
    TooLong,
}

/// Names another node to the realm: what it drew at its start, and the number of what is between both, which is
/// another one whenever something between them was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeighbourKey {
    pub incarnation: u64,
    pub pair: u64,
}

/// Which callees serve the calls of a node's clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locality {
    /// Those of all nodes, as the registration's policy says.
    #[default]
    Spread,
    /// Those of the same node, where there are any.
    Prefer,
}

/// What two nodes say to each other, in order and without a gap.
///
/// A call has the number that the caller's node gave it: in `Call`, `Continue` and `Cancel` towards the callee's node,
/// in `Result`, `Error` and `Bounce` back.
#[derive(Clone, Debug, PartialEq)]
pub enum Crossing<'m> {
    /// Callees of the other node are to be called; the message is a CALL.
    Call(Called<'m>),
    /// A CALL again: the next part of a progressive call.
    Continue(&'m Message<'m>),
    /// A CANCEL.
    Cancel(&'m Message<'m>),
    /// A RESULT.
    Result(&'m Message<'m>),
    /// An ERROR for a CALL.
    Error(&'m Message<'m>),
    /// No callee serves it: the call as it came, with what it has met.
    Bounce(Called<'m>),
    /// The sender's callees of a procedure or pattern.
    Offer(Offer<'m>),
    /// It has none any more.
    Withdraw(Pattern<'m>, EndTold),
    /// The receiver's callees of it are to lose it: somebody takes it over.
    Revoke(Pattern<'m>),
    /// A CALL of the meta API, which the receiver answers for its own sessions.
    Question(&'m Message<'m>),
    /// A RESULT or an ERROR for that.
    Answer(&'m Message<'m>),
    /// What was said before is to be known.
    Ask(u64),
    /// The answer.
    Known(u64),
}

/// Whether everybody was told that a registration has ended, by the node of which no callee has it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndTold {
    Yes,
    /// It took other nodes to have callees of it; the session that served it last.
    No(SessionId),
    /// Its callees had not begun to serve it.
    NothingBegun,
}

/// A call between nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Called<'m> {
    /// The registration that was found for it.
    pub registration: Pattern<'m>,
    pub journey: &'m Journey<'m>,
    /// A CALL.
    pub message: &'m Message<'m>,
}

/// What goes with a call from node to node, and back where it is not served there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journey<'m> {
    pub caller: Option<Disclosed<'m>>,
    /// Nodes that could not serve it, the last one last.
    pub tried: Cow<'m, [u64]>,
    /// Which callees of the node it is for; all, where there is none.
    pub stretch: Option<Stretch>,
    /// Shards whose callees have gone meanwhile.
    pub gone: Cow<'m, [u64]>,
    /// Callees that have had the next one asked.
    pub asked: u32,
    /// Some callee would have taken it that serves as many calls as it takes at a time.
    pub is_busy: bool,
    /// It is to wait for a callee of the node.
    pub waits: bool,
}

/// The callees between two numbers, with these; of one shard, where there is a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub low: u64,
    pub high: u64,
    pub resource: Option<Resource>,
}

/// The hash of a resource's key, and the shard that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    pub rkey: u64,
    pub shard: u64,
}

/// A callee as other nodes know it: its number, which says when it came, and its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    pub number: u64,
    pub shard: u64,
}

/// Callees of a registration that one node lists to others: the first ones, or of `last` the last ones.
pub const LISTED_MAX: usize = 256;

impl Journey<'_> {
    pub(crate) fn into_owned(self) -> Journey<'static> {
        let owned = |who: Disclosed<'_>| Disclosed {
            session: who.session,
            authid: who.authid.into_owned().into(),
            authrole: who.authrole.into_owned().into(),
        };
        Journey {
            caller: self.caller.map(owned),
            tried: self.tried.into_owned().into(),
            gone: self.gone.into_owned().into(),
            ..self
        }
    }

    /// What it takes in memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let caller = self.caller.as_ref();
        let names = caller.map_or(0, |who| who.authid.len() + who.authrole.len());
        size_of::<Self>() + names + size_of_val(&*self.tried) + size_of_val(&*self.gone)
    }
}

/// A node's part in a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<'m> {
    pub registration: Pattern<'m>,
    pub policy: InvocationPolicy,
    pub callees: u32,
    /// When the node's first callee came, in numbers that are counted up over all nodes: of two parts that cannot
    /// be beside each other the earlier one stays.
    pub claim: u64,
    /// The same of the first and the last callee that it has.
    pub first: u64,
    pub last: u64,
    /// So many of them as are listed, in the order of their numbers.
    pub listed: &'m [Listed],
}
