//! The types that a realm exchanges with realms of its name on other nodes: events, interest, and calls.

use std::borrow::Cow;

use crosstie_wamp::{
    Disclosed, InvocationPolicy, MatchPolicy, Message, Payload, PublicationId, PublishOptions,
    SessionId,
};

/// An event on its way from the node of its publisher to another node.
#[derive(Clone, Debug, PartialEq)]
pub struct Publication<'m> {
    pub id: PublicationId,
    /// The publisher, if it is disclosed.
    pub publisher: Option<Disclosed<'m>>,
    /// PUBLISH.Options. Each node applies the lists of receivers to its own sessions.
    pub options: &'m PublishOptions,
    pub topic: &'m str,
    pub payload: Payload<'m>,
    /// How all nodes retain the event, if they do.
    pub retained: Option<RetainedAs>,
}

/// How an event is retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetainedAs {
    /// Of two events that exclude each other the one with the higher number stays.
    pub number: u64,
    /// When the event expires, in microseconds since 1970.
    pub ends_us: Option<u64>,
}

/// The topic or pattern of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern<'m> {
    pub match_policy: MatchPolicy,
    pub topic: &'m str,
}

/// How far other nodes know this node's interest. Events for an interest announced at a position arrive once that
/// position is [in force](crate::Realm::handle_in_force); position 0 always is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// Why an event cannot be published: it would reach only some of its receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncrossed {
    /// The other nodes are unreachable.
    Detached,
    /// The connection between the nodes does not carry messages of this size.
    TooLong,
}

/// Names another node to the realm: its incarnation, a random number drawn at its start, and the number of the
/// connection between both nodes, which changes whenever a message was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeighbourKey {
    pub incarnation: u64,
    pub pair: u64,
}

/// Which callees serve the calls of a node's clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locality {
    /// The callees of all nodes, by the registration's policy.
    #[default]
    Spread,
    /// The callees of the caller's node, if it has any.
    Prefer,
}

/// A message between two nodes, in order and without a gap.
///
/// A call has the number that the caller's node gave it: in `Call`, `Continue` and `Cancel` towards the callee's node,
/// in `Result`, `Error` and `Bounce` back.
#[derive(Clone, Debug, PartialEq)]
pub enum Crossing<'m> {
    /// Requests an invocation of the other node's callees; the message is a CALL.
    Call(Called<'m>),
    /// A CALL again: the next part of a progressive call.
    Continue(&'m Message<'m>),
    /// A CANCEL.
    Cancel(&'m Message<'m>),
    /// A RESULT.
    Result(&'m Message<'m>),
    /// An ERROR for a CALL.
    Error(&'m Message<'m>),
    /// No callee of that node serves the call: it returns as it came, with its journey.
    Bounce(Called<'m>),
    /// Announces the sender's callees of a procedure or pattern.
    Offer(Offer<'m>),
    /// The sender has no callees of it any more.
    Withdraw(Pattern<'m>, EndTold),
    /// The receiver's callees of it lose the registration: another session takes it over.
    Revoke(Pattern<'m>),
    /// A CALL of the meta API. The receiver answers for its own sessions.
    Question(&'m Message<'m>),
    /// A RESULT or an ERROR for a question.
    Answer(&'m Message<'m>),
    /// Asks the receiver to confirm that it has processed everything sent before.
    Ask(u64),
    /// Confirms it.
    Known(u64),
}

/// Whether the sessions were told that a registration has ended, by a node that has lost its last callee of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndTold {
    Yes,
    /// It was not announced, because other nodes seemed to have callees; carries the session that served it last.
    No(SessionId),
    /// It was not announced: its callees had not begun to serve it.
    NothingBegun,
}

/// A call between nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Called<'m> {
    /// The registration that the caller's node found for it.
    pub registration: Pattern<'m>,
    pub journey: &'m Journey<'m>,
    /// A CALL.
    pub message: &'m Message<'m>,
}

/// The state that travels with a call from node to node, and back if no callee takes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journey<'m> {
    pub caller: Option<Disclosed<'m>>,
    /// Nodes that could not serve it, the latest last.
    pub tried: Cow<'m, [u64]>,
    /// Which callees of the node the call is for; all if absent.
    pub stretch: Option<Stretch>,
    /// Shards whose callees have gone in the meantime.
    pub gone: Cow<'m, [u64]>,
    /// Number of callees that rerouted the call to the next one.
    pub asked: u32,
    /// A callee would have taken the call, but is at its concurrency bound.
    pub is_busy: bool,
    /// The call waits for a callee of that node.
    pub waits: bool,
}

/// The callees between two numbers, inclusive; those of one shard, if a resource is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub low: u64,
    pub high: u64,
    pub resource: Option<Resource>,
}

/// The hash of a resource's key, and the shard that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    pub rkey: u64,
    pub shard: u64,
}

/// A callee as other nodes know it: its number, which tells when it registered, and its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    pub number: u64,
    pub shard: u64,
}

/// Maximum number of callees of a registration that a node lists to others: the first ones, or with `last` the last
/// ones.
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

    /// Approximate memory it takes.
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
    /// When the node's first callee registered, in numbers that count up over all nodes. Of two parts that exclude each
    /// other the earlier one stays.
    pub claim: u64,
    /// The numbers of its first and last callee.
    pub first: u64,
    pub last: u64,
    /// The listed callees, in the order of their numbers.
    pub listed: &'m [Listed],
}
