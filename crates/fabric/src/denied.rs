//! What the engine does not let a node do, by its subject.

/// What was asked for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied<'s> {
    /// To send something there.
    Publish(&'s str),
    /// To be sent what matches.
    Subscribe(&'s str),
    /// To be sent something, it is not said what.
    Unknown,
}

/// What a denial matters to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matters {
    /// An event is lost to other nodes.
    Event,
    /// A subject is not heard: who waits for it is to be refused, see [`crate::Member::is_denied`].
    Interest,
    /// The node cannot hear others, or be heard: the connection is of no use.
    Link,
}
