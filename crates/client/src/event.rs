//! A publication, as its subscribers receive it.

use crosstie_wamp::PublicationId;

use crate::arguments::Arguments;
use crate::peer::Peer;

/// A publication to a topic.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Event {
    /// The id of the publication.
    pub publication: PublicationId,
    /// Differs from the subscribed topic if that is a pattern.
    pub topic: String,
    /// The publisher, if the router discloses it.
    pub publisher: Option<Peer>,
    /// Whether it was published before the subscription, and retained.
    pub retained: bool,
    /// The trust level that the router assigns to the event; 0 is the lowest.
    pub trustlevel: Option<u64>,
    /// The event's arguments.
    pub arguments: Arguments,
}
