//! The message engine that connects nodes.

/// Passes messages between nodes.
pub trait Engine {
    /// Subscribes to a pattern under that number.
    fn subscribe(&mut self, sid: u64, pattern: &str);

    fn unsubscribe(&mut self, sid: u64);

    /// Publishes a message; an error if there is no room.
    fn publish(&mut self, subject: &str, frame: &[u8]) -> Result<(), Refused>;

    /// The same for a frame with its [length](crate::pack::length). It joins earlier frames for the same subject in one
    /// message that has not left yet.
    fn pack(&mut self, subject: &str, frame: &[u8]) -> Result<(), Refused>;

    /// Requests an answer once the server has processed everything before it.
    fn ping(&mut self);
}

/// The output to the engine is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;
