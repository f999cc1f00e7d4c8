//! Why a frame is not taken.

/// What was wrong with a message that came from the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no frame.
    Frame,
    /// It is of a version that this node does not take, or of a node that takes none of this one's.
    Version,
    /// A kind that is not known.
    Kind,
    /// A field is missing, or not of its form.
    Field,
    /// An event that is no PUBLISH, or not on the subject of its topic.
    Event,
    /// What a pair says is no message of its kind.
    Crossing,
    /// More nodes than are taken for some.
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
