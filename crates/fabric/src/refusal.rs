//! Reasons why a frame is rejected.

/// The fault of a message from the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not a frame.
    Frame,
    /// A version that this node does not accept, or a node that accepts none of this one's.
    Version,
    /// An unknown kind.
    Kind,
    /// A field is missing or malformed.
    Field,
    /// An event that is not a PUBLISH, or not on the subject of its topic.
    Event,
    /// A pair's frame without a valid message of its kind.
    Crossing,
    /// The maximum number of nodes is reached.
    Neighbours,
}

impl Refusal {
    pub const ALL: [Self; 7] = [
        Self::Frame,
        Self::Version,
        Self::Kind,
        Self::Field,
        Self::Event,
        Self::Crossing,
        Self::Neighbours,
    ];

    /// The label of its metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::Frame => "frame",
            Self::Version => "version",
            Self::Kind => "kind",
            Self::Field => "field",
            Self::Event => "event",
            Self::Crossing => "crossing",
            Self::Neighbours => "neighbours_max",
        }
    }
}
