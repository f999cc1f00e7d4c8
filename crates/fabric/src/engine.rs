//! What nodes meet on.

/// What passes messages between nodes.
pub trait Engine {
    /// What matches is wanted under that number.
    fn subscribe(&mut self, sid: u64, pattern: &str);

    fn unsubscribe(&mut self, sid: u64);

    /// Sends a message; an error where there is no room for it.
    fn publish(&mut self, subject: &str, frame: &[u8]) -> Result<(), Refused>;

    /// The same of a frame with its [length](crate::pack::length), behind others for the same subject in one message
    /// where that has not left yet.
    fn pack(&mut self, subject: &str, frame: &[u8]) -> Result<(), Refused>;

    /// Asks the server to answer when it has done what was said before.
    fn ping(&mut self);
}

/// The way to the engine is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;
