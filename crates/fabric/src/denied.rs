//! Permissions that the engine denies a node, by subject.

/// The denied operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied<'s> {
    /// To publish on that subject.
    Publish(&'s str),
    /// To receive messages that match.
    Subscribe(&'s str),
    /// To receive messages; the engine does not say which.
    Unknown,
}

/// The consequence of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matters {
    /// Other nodes miss an event.
    Event,
    /// A subject is not received: requests that wait for it must be refused, see [`crate::Member::is_denied`].
    Interest,
    /// The node cannot hear others, or be heard: the connection is useless.
    Link,
}
